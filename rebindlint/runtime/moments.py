"""What is known at the check: the four moments of a reload, put together for the oracles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from rebindlint.model import Protocol
from rebindlint.runtime.capture import Capture
from rebindlint.runtime.difference import Difference
from rebindlint.runtime.filling import Junk
from rebindlint.runtime.findings import Reader, StorageState
from rebindlint.runtime.recorder import External
from rebindlint.runtime.sites import Site, resolve
from rebindlint.runtime.snapshot import Cell, Snapshot, StorageFacts
from rebindlint.runtime.watch import Event

__all__ = ["Captured", "Moments", "Reload", "matches", "reader_of"]


@dataclass(slots=True)
class Captured:
    """The moment of capture. ``loose`` are storages that nothing but the capture kept even then (inputs made on the
    way); ``handles`` are native handles and the numbers they held.
    """

    capture: Capture
    snapshot: Snapshot
    step_site: Site
    loose: frozenset[int] = frozenset()
    handles: dict[int, int] = field(default_factory=dict)

    def readers(self) -> Iterator[External]:
        """What the step reads and does not write itself: the tensors whose values a reload has to get right."""
        return (e for e in self.capture.externals.values() if e.read and not e.written)


@dataclass(slots=True)
class Reload:
    """One reload as it was watched. ``error`` is what it raised, in one line."""

    protocol: Protocol
    before: Snapshot
    after: Snapshot
    difference: Difference
    events: Sequence[Event] = ()
    junk: Sequence[Junk] = ()
    updates: tuple[str, ...] = ()
    same_weights: bool = False
    error: str = ""


@dataclass(slots=True)
class Moments:
    captured: Captured
    reload: Reload
    unowned: frozenset[int] = frozenset()  # externals that nothing but the capture keeps now
    followed: frozenset[int] = frozenset()  # handles for which a replay passes those that the model has now

    @property
    def protocol(self) -> Protocol:
        return self.reload.protocol

    def old_state(self, facts: StorageFacts, *, moved: bool = False) -> StorageState:
        number = facts.number
        if moved:
            state = "moved"
        elif self.reload.after.names(number):
            state = "elsewhere"
        elif number in self.unowned or self._freed(number):
            state = "unowned"
        else:
            state = "kept"
        return StorageState(facts.address, facts.nbytes, facts.device, state)

    def _freed(self, number: int) -> bool:
        before = self.reload.before
        return number in before.storages and before.weak.freed(number)

    def new_state(self, cell: Cell | None) -> StorageState | None:
        if cell is None:
            return None
        facts = self.reload.after.storages[cell.number]
        return StorageState(facts.address, facts.nbytes, facts.device, "live")

    def values_matter(self, cell: Cell) -> bool:
        """Is the cell (of ``before``) a weight: registered, or read by the step; and no scratch that the step writes?"""
        external = self.captured.capture.externals.get(cell.number)
        if external is not None and external.written:
            return False
        return cell.registered or (external is not None and external.read)


def reader_of(external: External) -> Reader:
    use = external.reader
    return Reader(
        use.operator, use.argument, "write" if use.writes else "read", resolve(use.site) if use.site else None
    )


def matches(cell: Cell, patterns: Sequence[str]) -> bool:
    """Does the cell's path, with or without the root's name, match one of the patterns?"""
    short = cell.path.partition(".")[2]
    return any(fnmatchcase(cell.path, pattern) or fnmatchcase(short, pattern) for pattern in patterns)
