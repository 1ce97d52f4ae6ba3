"""One cell at the two moments that are compared: which memory it shows, who bound it, what that memory holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rebindlint.execution.cells import Captured, owned_storages
from rebindlint.execution.compare import current, nearest
from rebindlint.execution.interpreter import Site
from rebindlint.execution.places import place_of
from rebindlint.execution.twice import Outcome, shared_roots
from rebindlint.execution.values import DELETED, FIRST, SECOND, Obj, Storage, Tensor, Unknown
from rebindlint.model import Binding, Place

__all__ = ["CellState", "Contents", "Memory", "Write", "at_capture", "at_check", "captured_cell"]


class Memory(StrEnum):
    """Which memory a cell shows."""

    LOADED = "loaded"  # there before the hook, filled by loading
    BEFORE = "before"  # there before the hook
    FIRST_RUN = "first-run"  # allocated by the first run
    RUN_TIME = "run-time"  # allocated by run-time code, between the first run and the capture
    RELOADED = "reloaded"  # put there by the reload
    SECOND_RUN = "second-run"  # allocated by the second run
    NONE = "none"  # set to None
    DELETED = "deleted"
    ELSEWHERE = "elsewhere"  # what held the cell is no longer where it was


class Contents(StrEnum):
    """What a memory holds."""

    FIRST_LOAD = "first-load"
    SECOND_LOAD = "second-load"
    BOTH_LOADS = "both-loads"
    CONSTANT = "constant"  # does not depend on the weights


@dataclass(frozen=True, slots=True)
class Write:
    """The statement that bound a cell or copied into its memory."""

    place: Place
    binding: Binding
    text: str


@dataclass(frozen=True, slots=True)
class CellState:
    """A cell at capture or at the check.

    ``same``: it shows the memory that was captured. ``captured`` tells what that memory holds now and ``owned`` whether anything still
    has it; ``moved`` is the part of the path that leads elsewhere now.
    """

    path: str
    memory: Memory
    bound: Write | None = None
    copied: Write | None = None
    contents: Contents = Contents.CONSTANT
    weight: str = ""
    dtype: str = ""
    parameter: bool = False
    registered: bool = False
    view: bool = False
    strided: bool = False
    zeroed: bool = False
    same: bool = True
    captured: Contents = Contents.CONSTANT
    owned: bool = True
    moved: str = ""


def captured_cell(outcome: Outcome, path: str) -> Captured | None:
    """The cell with this path, else one behind it (the path of a finding may end at the object that was built anew)."""
    below = []
    for cell in outcome.captured or ():
        if cell.path == path:
            return cell
        texts = [edge.text for edge in cell.edges]
        if any("".join(texts[:end]) == path for end in range(1, len(texts))):
            below.append(cell)
    return next((cell for cell in below if _broken(cell) is not None), below[0] if below else None)


def at_capture(outcome: Outcome, cell: Captured) -> CellState:
    sites = outcome.first_sites or {}
    bound = (outcome.first_moved or {}).get(id(cell.tensor)) or nearest(sites, cell) or _around(sites, cell)
    memory = Memory.FIRST_RUN if cell.storage.born == 1 else Memory.LOADED if cell.storage.weight else Memory.BEFORE
    filled = outcome.interpreter.filled.get(cell.storage.number)
    if filled is not None:
        memory, bound = Memory.RUN_TIME, filled
    return CellState(
        cell.path,
        memory,
        _write(bound),
        contents=_contents(cell.epochs),
        weight=cell.storage.weight if memory is Memory.LOADED else "",
        dtype=_dtype(cell.dtype),
        parameter=cell.tensor.is_parameter,
        registered=cell.registered,
        view=bool(cell.tensor.path) and memory is not Memory.FIRST_RUN,
        strided=cell.strided,
        zeroed=cell.storage.zeroed,
    )


def at_check(outcome: Outcome, cell: Captured) -> CellState:
    m = outcome.interpreter
    owned = cell.storage.number in owned_storages(m, [*outcome.roots, *shared_roots(m)])
    captured = _contents(cell.storage.epochs if cell.epochs else 0)
    broken = _broken(cell)
    if broken is not None:
        path = "".join(edge.text for edge in cell.edges[: broken + 1])
        bound = nearest(m.sites, cell, broken)
        return CellState(
            cell.path, Memory.ELSEWHERE, _write(bound), same=False, captured=captured, owned=owned, moved=path
        )
    now = current(cell.last)
    site = nearest(m.sites, cell)
    tensor = now.tensor if isinstance(now, Unknown) else now
    if not isinstance(tensor, Tensor):
        memory = Memory.DELETED if now is DELETED or now is None else Memory.NONE
        return CellState(cell.path, memory, _write(site), same=False, captured=captured, owned=owned)
    storage = tensor.storage
    same = storage is cell.storage
    moved = m.moved.get(id(tensor))
    holder = cell.last.holder
    return CellState(
        cell.path,
        _memory_now(storage, cell, outcome),
        _write(moved or site),
        _write(m.copies.get(storage.number)),
        contents=_contents(storage.epochs),
        weight=storage.weight,
        dtype=_dtype(tensor.dtype),
        parameter=tensor.is_parameter,
        registered=isinstance(holder, Obj) and holder.is_module and cell.last.key in holder.registered,
        view=bool(tensor.path) and storage.born != m.run,
        strided=tensor.strided,
        zeroed=storage.zeroed,
        same=same,
        captured=captured,
        owned=owned,
    )


def _memory_now(storage: Storage, cell: Captured, outcome: Outcome) -> Memory:
    if storage.born:
        return Memory.SECOND_RUN if storage.born == 2 else Memory.FIRST_RUN
    known = {c.storage.number for c in outcome.captured or ()}
    if storage is cell.storage or storage.number in known:
        return Memory.LOADED if storage.weight else Memory.BEFORE
    return Memory.RELOADED if storage.epochs == SECOND else Memory.BEFORE


def _broken(cell: Captured) -> int | None:
    """The first edge on the way to the cell that leads to another object now."""
    for position in range(1, len(cell.edges) - 1):
        if current(cell.edges[position]) is not cell.edges[position + 1].holder:
            return position
    return None


def _around(sites: dict[tuple[int, object], Site], cell: Captured) -> Site | None:
    """The statement that bound the innermost object around the cell: its constructor made the cell."""
    for edge in reversed(cell.edges[1:-1]):
        site = sites.get((id(edge.holder), edge.key))
        if site is not None:
            return site
    return None


def _write(site: Site | None) -> Write | None:
    if site is None:
        return None
    place = place_of(site.module, site.statement)
    lines = site.module.lines[place.start.row - 1 : place.end.row]
    return Write(place, site.binding, " ".join(" ".join(lines).split()))


def _contents(epochs: int) -> Contents:
    if not epochs:
        return Contents.CONSTANT
    return {FIRST: Contents.FIRST_LOAD, SECOND: Contents.SECOND_LOAD}.get(epochs, Contents.BOTH_LOADS)


def _dtype(label: str) -> str:
    return label if label.startswith("torch.") else ""
