"""Snapshots of a census.

A snapshot keeps no tensor and no memory: storages are named by number and weakly referenced, so that a later snapshot
can say whether an old one was freed, even when its address has been given out again meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch

from rebindlint.runtime.census import Census, Limits, TensorRecord, take_census
from rebindlint.runtime.storages import WeakStorages, digest, nan_fractions

__all__ = ["VALUE_LIMIT", "Cell", "Layout", "Snapshot", "StorageFacts", "take_snapshot"]

VALUE_LIMIT: Final = 1 << 28  # bytes of a tensor up to which its values are looked at


@dataclass(frozen=True, slots=True)
class Layout:
    """How a tensor lies in its storage; offset and strides count elements."""

    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Layout:
        return cls(
            int(tensor.storage_offset()), tuple(map(int, tensor.shape)), tuple(map(int, tensor.stride())), tensor.dtype
        )

    @property
    def span(self) -> tuple[int, int]:
        """First byte and the byte after the last one; equal for an empty tensor."""
        start = self.offset * self.dtype.itemsize
        if 0 in self.shape:
            return start, start
        last = sum((size - 1) * stride for size, stride in zip(self.shape, self.stride, strict=True))
        return start, start + (last + 1) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{str(self.dtype).removeprefix('torch.')}{list(self.shape)} strides {list(self.stride)} offset {self.offset}"


@dataclass(frozen=True, slots=True)
class StorageFacts:
    number: int
    address: int
    nbytes: int
    device: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A place that held a tensor: ``key`` of the object ``owner_id`` of class ``owner_class``, reached by ``path``.

    ``holders`` leads outwards from there: (id of the object, key under which it holds the next one), innermost first.
    """

    path: str
    kind: str
    owner_id: int
    owner_class: str
    key: Any
    module_class: str
    parameter: bool
    tensor_id: int
    number: int
    layout: Layout
    digest: str | None
    holders: tuple[tuple[int, Any], ...]
    finalized: bool  # the owner's class has a __del__: it owns something that Python does not see

    @property
    def registered(self) -> bool:
        return self.kind in ("parameter", "buffer")

    @property
    def slot(self) -> tuple[int, Any]:
        return self.owner_id, self.key if isinstance(self.key, (str, int)) else id(self.key)


class Snapshot:
    """What every path led to at one moment."""

    def __init__(self) -> None:
        self.cells: dict[str, Cell] = {}
        self.storages: dict[int, StorageFacts] = {}
        self.by_storage: dict[int, list[Cell]] = {}
        self.by_slot: dict[tuple[int, Any], Cell] = {}
        self.nan: dict[tuple[int, Layout], tuple[float, float]] = {}  # fraction of NaN, and of elements of 0xFF bytes
        self.cut: tuple[tuple[str, int], ...] = ()
        self.weak = WeakStorages()

    def find(self, cell: Cell) -> Cell | None:
        """The cell of another snapshot as it is in this one: by path, else by the object that held it."""
        return self.cells.get(cell.path) or self.by_slot.get(cell.slot)

    def names(self, number: int) -> list[Cell]:
        """Every cell on that storage, the best name first."""
        return self.by_storage.get(number, [])


def take_snapshot(
    roots: Mapping[str, object], limits: Limits | None = None, *, values: bool = False, value_limit: int = VALUE_LIMIT
) -> tuple[Snapshot, Census]:
    """Walk the roots and note what is there. The census returned beside it holds the tensors: drop it before counting
    owners.

    With ``values`` the contents of every tensor up to ``value_limit`` bytes are hashed, and NaN are counted.
    """
    census = take_census(roots, limits)
    snapshot = Snapshot()
    snapshot.cut = tuple(census.cut)
    hashes: dict[tuple[int, Layout], str | None] = {}
    with torch.inference_mode(), torch._C.DisableTorchFunction():
        for record in census.records:
            if record.storage is None:
                continue
            number = snapshot.weak.add(record.storage)
            if number not in snapshot.storages:
                snapshot.storages[number] = StorageFacts(
                    number, record.storage.data_ptr(), record.storage.nbytes(), str(record.storage.device)
                )
            layout = Layout(record.offset, tuple(record.tensor.shape), tuple(record.stride), record.tensor.dtype)
            if values and (number, layout) not in hashes:
                hashes[number, layout] = digest(record.tensor, value_limit)
                if hashes[number, layout] is not None and (fractions := nan_fractions(record.tensor)) is not None:
                    snapshot.nan[number, layout] = fractions
            _add(snapshot, _cell(record, census, layout, hashes.get((number, layout))))
    return snapshot, census


def _cell(record: TensorRecord, census: Census, layout: Layout, values: str | None) -> Cell:
    owner_type = type(record.owner)
    return Cell(
        path=record.path,
        kind=record.kind,
        owner_id=id(record.owner),
        owner_class=owner_type.__qualname__,
        key=record.key if isinstance(record.key, (str, int)) else repr(type(record.key)),
        module_class=record.module_class,
        parameter=isinstance(record.tensor, torch.nn.Parameter),
        tensor_id=id(record.tensor),
        number=record.number,
        layout=layout,
        digest=values,
        holders=tuple(_holders(record.owner, census)),
        finalized=hasattr(owner_type, "__del__"),
    )


def _holders(owner: Any, census: Census, depth: int = 6) -> Iterator[tuple[int, Any]]:
    for _ in range(depth):
        if owner is None:
            return
        holder, key = census.parents.get(id(owner), (None, None))
        if holder is None:
            return
        yield id(holder), key if isinstance(key, (str, int)) else repr(type(key))
        owner = holder


def _add(snapshot: Snapshot, cell: Cell) -> None:
    snapshot.cells.setdefault(cell.path, cell)
    snapshot.by_storage.setdefault(cell.number, []).append(cell)
    snapshot.by_slot.setdefault(cell.slot, cell)
