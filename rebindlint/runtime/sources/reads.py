"""What a step reads when its compiled operators are stand-ins: they never reach the dispatcher, so they tell by hand."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch

from rebindlint.runtime.operators import OperatorFacts, flat
from rebindlint.runtime.recorder import Recorder
from rebindlint.runtime.sites import raw_sites
from rebindlint.runtime.storages import storage_of

__all__ = ["ReadRecorder", "note_call", "reading"]

_OPAQUE: Final = OperatorFacts((), frozenset(), False, False, False, "", False)  # what it writes is not known
_active: list[ReadRecorder] = []


class ReadRecorder(Recorder):  # type: ignore[no-untyped-call]
    """A recorder that stand-ins can tell which tensors they were called with."""

    def __init__(self) -> None:
        super().__init__(keep_operations=False)

    def note(self, operator: str, arguments: Iterable[tuple[str, Any]]) -> None:
        site = next(iter(raw_sites(sys._getframe(2), 1)), None)
        self.count += 1
        for name, value in arguments:
            for tensor in flat(value):
                storage = storage_of(tensor) if isinstance(tensor, torch.Tensor) else None
                if storage is not None and storage._cdata not in self._made:
                    self._note_uses(storage._cdata, [(name, tensor)], operator, _OPAQUE, site, False)


@contextmanager
def reading(recorder: ReadRecorder) -> Iterator[None]:
    """Note what runs in the ``with`` body, dispatched operators and stand-ins alike."""
    _active.append(recorder)
    try:
        with torch.no_grad(), recorder:
            yield
    finally:
        _active.remove(recorder)


def note_call(operator: str, arguments: Iterable[tuple[str, Any]]) -> None:
    """A stand-in was called; does nothing outside `reading`."""
    for recorder in _active:
        recorder.note(operator, arguments)
