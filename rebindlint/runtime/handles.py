"""Native handles: one 64-bit integer on the host that stands for an object of a C++ library, such as packed weights.

A captured step passes the number that the handle held at capture. On a GPU no engine puts such handles into a graph;
on a CPU, where engines capture no graphs at all, a reload may replace them freely as long as the live model uses the
new ones.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Final

import torch

from rebindlint.runtime.census import Limits, take_census
from rebindlint.runtime.moments import Captured
from rebindlint.runtime.recorder import External
from rebindlint.runtime.snapshot import Cell

__all__ = ["followed", "handle_value", "is_native_handle"]

_LOWEST_POINTER: Final = 1 << 20  # token and slot numbers stay below
_HIGHEST_POINTER: Final = 1 << 47
_HANDLE_TYPES: Final = ("torch.int64", "torch.uint64")
_HANDLE_BYTES: Final = 8


def handle_value(external: External, cells: list[Cell]) -> int | None:
    """The number in a native handle, None for anything else: one 64-bit integer on the host that an object with a
    ``__del__`` holds, or that looks like an address.
    """
    tensor = external.tensor
    if not _may_be_handle(tensor) or external.nbytes != _HANDLE_BYTES:
        return None
    value = int(tensor)
    pointer = _LOWEST_POINTER <= value < _HIGHEST_POINTER and value % 8 == 0
    return value if pointer or any(cell.finalized for cell in cells) else None


def is_native_handle(cell: Cell) -> bool:
    """The same of a tensor that the step may not read: an object with a ``__del__`` holds it."""
    layout = cell.layout
    single = all(size == 1 for size in layout.shape)
    return cell.finalized and single and str(layout.dtype) in _HANDLE_TYPES


def _may_be_handle(tensor: torch.Tensor) -> bool:
    return str(tensor.dtype) in _HANDLE_TYPES and tensor.device.type == "cpu" and tensor.numel() == 1


@contextlib.contextmanager
def followed(captured: Captured, roots: Mapping[str, object], limits: Limits) -> Iterator[frozenset[int]]:
    """While open, replays pass the handles that the live model has now. Gives the numbers of the storages that have
    such a successor.

    The numbers of the old handles are put back on exit: the objects that own them free what they name.
    """
    now = {record.path: record.tensor for record in take_census(roots, limits).records}
    old: list[tuple[External, int]] = []
    try:
        with torch.inference_mode():
            for number, value in captured.handles.items():
                external = captured.capture.externals[number]
                places = (now.get(cell.path) for cell in captured.snapshot.names(number))
                successor = next((t for t in places if t is not None and _may_be_handle(t)), None)
                if successor is not None:
                    old.append((external, value))
                    external.tensor.fill_(int(successor))
        yield frozenset(external.number for external, _ in old)
    finally:
        with torch.inference_mode():
            for external, value in old:
                external.tensor.fill_(value)
