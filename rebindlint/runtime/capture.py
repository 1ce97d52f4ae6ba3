"""A captured step: which storages it holds, and a replay on exactly those storages.

`Recording` works on any device through the dispatcher; ``cuda_graph.GraphCapture`` is a real ``torch.cuda.CUDAGraph``
with the recorder inside. Both keep the captured storages alive, so that looking at dead memory is safe.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch

from rebindlint.model import RebindlintError
from rebindlint.runtime.compare import tensors_in
from rebindlint.runtime.operators import flat
from rebindlint.runtime.recorder import External, NativeObject, Obstacle, Recorder
from rebindlint.runtime.storages import storage_of

__all__ = ["Capture", "NotReplayable", "Recording", "Uncaptured", "first_line", "in_one_line", "record"]


class NotReplayable(RebindlintError):
    """The captured step cannot be replayed; the message says why in one line."""


def first_line(error: BaseException) -> str:
    """An exception in one line: its class and the first line of its message. Never raises."""
    lines = _message(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def in_one_line(error: BaseException) -> str:
    """The same with the whole message."""
    return " ".join(f"{type(error).__name__}: {_message(error)}".split())


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # a class of the host's own
        return ""


class Capture(ABC):
    """``obstacles`` say why a graph could not hold the step (none: it can)."""

    kind: str  # in words, for reports

    def __init__(self, recorder: Recorder, result: Any) -> None:
        self._recorder = recorder
        self.externals: dict[int, External] = recorder.externals
        self.native: Sequence[NativeObject] = tuple(recorder.native)
        self.obstacles: list[Obstacle] = list(recorder.obstacles)
        self.outputs: list[torch.Tensor] = [recorder.hold(tensor) for tensor in tensors_in(result)]
        self.operators: int = recorder.count
        self.owners: list[object] = []  # of native handles: while they live, replaying cannot touch freed native memory

    def held(self, number: int) -> int:
        """How many tensors of ours hold the storage of that number."""
        return self._recorder.held[number]

    def moved(self) -> list[External]:
        """Externals whose memory is no longer where and what it was: replaying on them would touch foreign memory."""
        return [e for e in self.externals.values() if _where(e.tensor) != (e.address, e.nbytes)]

    @abstractmethod
    def replay(self) -> None:
        """Run the captured step on the captured storages; results land in `outputs`. Raises NotReplayable."""


def _where(tensor: torch.Tensor) -> tuple[int, int]:
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.nbytes()


class Uncaptured(Capture):
    """Stands for a step that could not be captured: it holds nothing and cannot be replayed."""

    kind = "nothing"

    def __init__(self, reason: str) -> None:
        super().__init__(Recorder(keep_operations=False), None)
        self.reason = reason

    def replay(self) -> None:
        raise NotReplayable(self.reason)


class Recording(Capture):
    """Every operator again, in order, with the same tensors; new results are copied into the recorded ones."""

    kind = "recorded operators"

    def replay(self) -> None:
        with torch.inference_mode(), torch._C.DisableTorchFunction():
            for operation in self._recorder.operations:
                if operation.constant is not None:
                    operation.made[0][1].copy_(operation.constant)
                    continue
                try:
                    results = list(flat(operation.function(*operation.args, **operation.kwargs)))
                except Exception as error:  # whatever an operator may raise: the step cannot be replayed
                    raise NotReplayable(f"replaying {operation.function} failed: {first_line(error)}") from error
                for index, recorded in operation.made:
                    _copy_into(recorded, results[index], operation.function)


def _copy_into(recorded: torch.Tensor, new: torch.Tensor, function: Callable[..., Any]) -> None:
    if new.shape != recorded.shape or new.dtype != recorded.dtype:
        raise NotReplayable(
            f"replaying {function} gave {list(new.shape)} where {list(recorded.shape)} was recorded: "
            "its shape depends on values"
        )
    old, fresh = storage_of(recorded), storage_of(new)
    if old is None or fresh is None or old._cdata != fresh._cdata:
        recorded.copy_(new)


def record(step: Callable[[], Any], look_inside: Collection[str] = ()) -> Recording:
    """Run the step once under the recorder. Raises NotReplayable when it runs only without it."""
    recorder = Recorder(keep_operations=True, look_inside=look_inside)
    try:
        with torch.no_grad(), recorder:
            result = step()
    except Exception as error:  # the step has run before without the recorder
        raise NotReplayable(f"the step cannot run under a dispatch mode: {first_line(error)}") from error
    return Recording(recorder, result)
