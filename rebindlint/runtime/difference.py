"""What changed between two snapshots, decided by storage and never by path alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rebindlint.runtime.snapshot import Cell, Snapshot, StorageFacts

__all__ = ["Difference", "Move", "Split", "difference"]


@dataclass(frozen=True, slots=True)
class Move:
    """A cell that is on another storage than before (``after`` is None: no tensor there any more)."""

    before: Cell
    after: Cell | None
    old: StorageFacts
    new: StorageFacts | None
    freed: bool  # nothing owns the old storage
    names: tuple[str, ...]  # paths that still lead to the old storage


@dataclass(frozen=True, slots=True)
class Split:
    """Cells that overlapped in one storage and are on different storages now."""

    old: StorageFacts
    stayed: tuple[Cell, ...]  # as they are now
    moved: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    moved: tuple[Move, ...]
    relaid: tuple[tuple[Cell, Cell], ...]  # same storage, other layout
    reallocated: tuple[tuple[StorageFacts, StorageFacts], ...]  # same storage object, other memory
    split: tuple[Split, ...]


def difference(before: Snapshot, after: Snapshot) -> Difference:
    moved: dict[tuple[str, int], Move] = {}
    relaid: list[tuple[Cell, Cell]] = []
    for cells in before.by_storage.values():
        for cell in cells:
            now = after.find(cell)
            if now is None or now.number != cell.number:
                moved[cell.path, cell.number] = _move(cell, now, before, after)
            elif now.layout != cell.layout:
                relaid.append((cell, now))
    reallocated = tuple(
        (old, new)
        for number, old in before.storages.items()
        if (new := after.storages.get(number)) is not None and (new.address, new.nbytes) != (old.address, old.nbytes)
    )
    return Difference(tuple(moved.values()), tuple(relaid), reallocated, tuple(_splits(before, after, moved)))


def _move(cell: Cell, now: Cell | None, before: Snapshot, after: Snapshot) -> Move:
    return Move(
        cell,
        now,
        before.storages[cell.number],
        after.storages[now.number] if now is not None else None,
        before.weak.freed(cell.number),
        tuple(name.path for name in after.names(cell.number)),
    )


def _splits(before: Snapshot, after: Snapshot, moved: Mapping[tuple[str, int], Move]) -> Iterator[Split]:
    for number, cells in before.by_storage.items():
        if len(cells) < 2 or not any((cell.path, number) in moved for cell in cells):
            continue
        for group in _overlapping(cells):
            now = [(cell, after.find(cell)) for cell in group]
            if len({other.number for _, other in now if other is not None}) < 2:
                continue
            stayed = tuple(other for _, other in now if other is not None and other.number == number)
            yield Split(
                before.storages[number],
                stayed,
                tuple(moved[cell.path, number] for cell, other in now if other is not None and other.number != number),
            )


def _overlapping(cells: list[Cell]) -> Iterator[list[Cell]]:
    """Groups of cells whose bytes overlap; neighbours in one big storage (slices of a pool) are no aliases."""
    group: list[Cell] = []
    reach = -1
    for cell in sorted(cells, key=lambda cell: cell.layout.span):
        start, end = cell.layout.span
        if start == end:
            continue
        if start >= reach and group:
            yield group
            group = []
        group.append(cell)
        reach = max(reach, end)
    if group:
        yield group
