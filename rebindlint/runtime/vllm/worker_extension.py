"""``worker_extension_cls="rebindlint.runtime.vllm.WorkerExtension"``: what a driver asks its workers for.

```python
llm = LLM(model, enforce_eager=True, worker_extension_cls="rebindlint.runtime.vllm.WorkerExtension")
llm.collective_rpc("rebindlint_capture")   # the next decode step is captured
llm.generate(...)
llm.collective_rpc("rebindlint_snapshot")
...                                        # load weights in whatever way
reports = llm.collective_rpc("rebindlint_verify")
```

Works beside the plugin and without it. A framework that has an extension of its own inherits from this one.
"""

from __future__ import annotations

from typing import Any

from rebindlint.model import RebindlintError

__all__ = ["WorkerExtension"]


class WorkerExtension:
    """Mixed into the worker's class by vLLM. Results are plain values that can be sent between processes."""

    def rebindlint_capture(self) -> dict[str, Any]:
        """Capture the next decode step (the plugin captures the first one by itself)."""
        rank = _rank_of(self)
        rank.want_step()
        return {"rank": rank.report.rank, "model": rank.report.model}

    def rebindlint_snapshot(self) -> dict[str, Any]:
        """The moment before a reload. Everything until `rebindlint_verify` belongs to it.

        Raises RebindlintError when a reload has begun already.
        """
        rank = _rank_of(self)
        return {"rank": rank.report.rank, **rank.snapshot()}

    def rebindlint_verify(self, checkpoint: str = "") -> dict[str, Any]:
        """Judge what happened since `rebindlint_snapshot`, or, without one, give the last reload's report again.

        With ``checkpoint``, a folder with the weights that the model has by now, it is compared with a fresh load of
        that as well, which takes its memory twice. ``findings`` have the keys of the JSON report. Raises RebindlintError when nothing was reloaded.
        """
        rank = _rank_of(self)
        return {"rank": rank.report.rank, **rank.verified(checkpoint)}

    def rebindlint_report(self) -> dict[str, Any]:
        """The rank's whole report, as its file would hold it."""
        report: dict[str, Any] = _rank_of(self).report.to_json()
        return report


def _rank_of(worker: Any) -> Any:
    from rebindlint.runtime.vllm.process import ranks_of_process, watch_process
    from rebindlint.runtime.vllm.settings import Settings

    ranks = ranks_of_process() or watch_process(Settings("report", None))
    rank = ranks.rank_of(worker)
    if not rank.loaded():
        raise RebindlintError("the worker has no model yet")
    return rank
