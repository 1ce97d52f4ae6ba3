"""The same capture as a real CUDA graph: ``torch.cuda.CUDAGraph`` replays, the recorder inside the capture gives the
names.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Any, Final

import torch

from rebindlint.runtime.capture import Capture, NotReplayable, first_line
from rebindlint.runtime.recorder import Obstacle, Recorder

__all__ = ["GraphCapture", "capture_graph"]

_DEVICE: Final = "cuda"
_WARM_UPS: Final = 3  # runs on a side stream before capturing, as torch's documentation asks for


class GraphCapture(Capture):
    """Addresses are the graph's own. Storages on the host are left out: a graph holds their values, not their
    addresses.
    """

    kind = "CUDA graph"

    def __init__(self, graph: torch.cuda.CUDAGraph, recorder: Recorder, result: Any) -> None:
        super().__init__(recorder, result)
        self.graph = graph
        self.externals = {n: e for n, e in self.externals.items() if e.tensor.device.type == _DEVICE}
        # what the stream cannot capture has raised already; shapes that "depend on values" were fixed by the kernel called
        self.obstacles: list[Obstacle] = []

    def replay(self) -> None:
        try:
            self.graph.replay()
            torch.cuda.synchronize()
        except RuntimeError as error:
            raise NotReplayable(f"replaying the CUDA graph failed: {first_line(error)}") from error


def capture_graph(step: Callable[[], Any], look_inside: Collection[str] = ()) -> GraphCapture:
    """Warm up on a side stream, then capture. Raises NotReplayable when the stream cannot capture the step."""
    side: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.no_grad(), torch.cuda.stream(side):
        for _ in range(_WARM_UPS):
            step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    recorder = Recorder(keep_operations=False, look_inside=look_inside)
    try:
        with torch.no_grad(), torch.cuda.graph(graph, **_liveness()), recorder:
            result = step()
    except Exception as error:  # the step has run before outside a capture
        torch.cuda.synchronize()
        raise NotReplayable(f"the step cannot be captured: {first_line(error)}") from error
    return GraphCapture(graph, recorder, result)


def _liveness() -> dict[str, Any]:
    """torch >= 2.13 can refuse to replay on freed inputs. Ours are kept alive; it is a second line of defence for
    those we do not see.
    """
    known = inspect.signature(torch.cuda.graph.__init__).parameters
    return {"check_input_liveness": True} if "check_input_liveness" in known else {}
