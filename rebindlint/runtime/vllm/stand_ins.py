"""Stand-ins for CUDA graphs, with which vLLM's own ``CUDAGraphWrapper`` captures and replays on a CPU.

```python
with cuda_graphs_on_cpu() as graphs:
    wrapper = CUDAGraphWrapper(model.forward, vllm_config, CUDAGraphMode.FULL)
    ...                          # the first call captures, later ones replay
graphs[0].capture.externals      # the storages that the graph holds
```

What is captured are the operators that the dispatcher sees, so the engine has to run eagerly (``enforce_eager``).
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Final

import torch

from rebindlint.runtime.capture import NotReplayable, Recording
from rebindlint.runtime.recorder import Recorder

__all__ = ["StandInGraph", "cuda_graphs_on_cpu"]

_WRAPPER: Final = "vllm.compilation.cuda_graph"
_PLATFORMS: Final = "vllm.platforms"


class StandInGraph:
    """Stands for ``torch.cuda.CUDAGraph``. ``capture`` is None until something was captured."""

    def __init__(self, keep_graph: bool = False) -> None:
        self.capture: Recording | None = None

    def replay(self) -> None:
        """Raises NotReplayable when nothing was captured or the capture cannot be replayed."""
        if self.capture is None:
            raise NotReplayable("nothing was captured in this graph")
        self.capture.replay()

    def reset(self) -> None:
        self.capture = None

    def pool(self) -> tuple[int, int]:
        """Pools are a matter of devices: all graphs share none."""
        return (0, 0)


class _Capturing:
    """Stands for ``torch.cuda.graph``: what runs in the ``with`` body is captured in the graph."""

    captured: list[StandInGraph]

    def __init__(self, cuda_graph: StandInGraph, *args: Any, **kwargs: Any) -> None:
        self._graph = cuda_graph
        self._recorder = Recorder(keep_operations=True)
        self._entered = contextlib.ExitStack()

    def __enter__(self) -> None:
        self._entered.enter_context(self._recorder)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.close()
        if error is None:
            self._graph.capture = Recording(self._recorder, None)
            self.captured.append(self._graph)


@contextlib.contextmanager
def cuda_graphs_on_cpu() -> Iterator[list[StandInGraph]]:
    """The graphs that are captured in the body, in order; afterwards everything is as it was. They stay replayable.

    Raises ImportError when vLLM cannot be imported.
    """
    captured: list[StandInGraph] = []
    capturing = type("graph", (_Capturing,), {"captured": captured})
    wrapper = importlib.import_module(_WRAPPER)
    platform = type(importlib.import_module(_PLATFORMS).current_platform)
    with contextlib.ExitStack() as undo:
        for owner, name, value in (
            (torch.cuda, "CUDAGraph", StandInGraph),
            (torch.cuda, "graph", capturing),
            (wrapper, "current_stream", _nothing),
            (wrapper, "weak_ref_tensors", _same),
            (wrapper, "capture_pool", _pool_as_it_is),
        ):
            undo.enter_context(_replaced(owner, name, value))
        undo.enter_context(_replaced(platform, "get_global_graph_pool", classmethod(_nothing), add=True))
        yield captured


def _nothing(*args: Any, **kwargs: Any) -> None:
    """No stream and no pool."""


def _same(tensors: Any) -> Any:
    """The captured results stay alive here, as a graph's pool keeps them there."""
    return tensors


def _pool_as_it_is(pool: Any, *args: Any, **kwargs: Any) -> contextlib.AbstractContextManager[Any]:
    return contextlib.nullcontext(pool)


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Callable[..., Any] | Any, *, add: bool = False) -> Iterator[None]:
    """An attribute that a release does not have is left alone, unless it is to be added."""
    own = vars(owner).get(name)
    if own is None and not add:
        yield
        return
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)
