"""Runs in the engine's environment: what watching costs a reload, and what it costs the steps between reloads.

    python overhead.py CHECKPOINTS KIND PAIRS

CHECKPOINTS/KIND holds v1 and v2. Prints, as JSON, seconds of processor time, by what was done: ``reload``, ``watched``
and ``filled`` (watched, and uninitialised memory filled) in turn, and ``step`` and ``step after`` for blocks of decode
steps after the first two.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

STEPS = 20  # in a block


def measured(worker: Any, folder: Path, pairs: int) -> dict[str, list[float]]:
    import torch

    from rebindlint.runtime.snapshot import take_snapshot
    from rebindlint.runtime.watch import Watch

    worker = getattr(worker, "worker", worker)
    model = worker.model_runner.get_model()
    step = TAP[0].frozen(worker.vllm_config)
    _, census = take_snapshot({"model": model, "runner": worker.model_runner})
    classes = list(census.owners)
    del census
    times: dict[str, list[float]] = {"reload": [], "watched": [], "filled": [], "step": [], "step after": []}

    def timed(name: str, action: Any) -> None:
        began = time.process_time()
        action()
        times[name].append(time.process_time() - began)

    def reload(number: int, watch: contextlib.AbstractContextManager[Any]) -> None:
        with watch:
            worker.reload_weights(weights_path=str(folder / f"v{number % 2 + 1}"))

    def steps() -> None:
        for _ in range(STEPS):
            step(model)

    torch.set_num_threads(1)
    for number in range(3):  # warm
        reload(number, Watch(classes))
        steps()
    for number in range(pairs):
        timed("reload", lambda: reload(number, contextlib.nullcontext()))  # noqa: B023
        timed("step", steps)
        timed("watched", lambda: reload(number, Watch(classes, junk=False)))  # noqa: B023
        timed("step after", steps)
        timed("filled", lambda: reload(number, Watch(classes)))  # noqa: B023
    return times


TAP: list[Any] = []


def main() -> None:
    folder, kind, pairs = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    from rebindlint.runtime.vllm.engine import running
    from rebindlint.runtime.vllm.step import StepTap

    with running(str(folder / kind / "v1")) as engine:
        engine.call(lambda worker: TAP.append(StepTap(worker.model_runner.get_model())))
        engine.generate()
        (times,) = engine.call(measured, folder / kind, pairs)
    print("RESULT " + json.dumps(times), flush=True)
    os._exit(0)  # native threads of the engine may hang on the way out


if __name__ == "__main__":
    main()
