"""Which cells a hook writes, over all of its paths and both runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rebindlint.execution.cells import Captured
from rebindlint.execution.interpreter import Site
from rebindlint.execution.places import place_of
from rebindlint.execution.twice import Outcome
from rebindlint.execution.values import ListValue, Obj, Tensor, Unknown, Value
from rebindlint.model import Binding, Place, Protocol, Rebinding

__all__ = ["How", "Ledger", "Written", "how"]


class How(StrEnum):
    """What a statement does to a cell."""

    BOUND = "bound"  # an attribute or slot gets a tensor
    BUILT = "built"  # an attribute gets a new object that holds tensors
    MOVED = "moved"  # .data gets other memory
    REGISTERED = "registered"  # a parameter or buffer is assigned or registered
    REPLACED = "replaced"  # by the tree's replace helper
    COPIED = "copied"  # copy_ into the memory that is there
    DELETED = "deleted"  # deleted, or set to None


_HOW = {
    Binding.DATA: How.MOVED,
    Binding.PARAMETER: How.REGISTERED,
    Binding.REPLACE: How.REPLACED,
    Binding.RELEASE: How.DELETED,
    Binding.COPY: How.COPIED,
    Binding.HOLDER: How.BUILT,
}


@dataclass(frozen=True, slots=True, order=True)
class Written:
    """A cell by its path from the hook's variables, and a statement that writes it: on several paths in several ways."""

    place: Place
    path: str
    how: tuple[How, ...]


def how(binding: Binding) -> How:
    """A binding in the words of the audit."""
    return _HOW.get(binding, How.BOUND)


class Ledger:
    """Watches the executions of one hook. ``completed`` and ``refused`` are protocols under which some path ended, or raised on reload."""

    def __init__(self) -> None:
        self.captured = False
        self.completed: set[Protocol] = set()
        self.refused: set[Protocol] = set()
        self._written: dict[tuple[Place, str], set[How]] = {}

    def __call__(self, outcome: Outcome, facts: Sequence[Rebinding]) -> None:
        m = outcome.interpreter
        self.captured = self.captured or outcome.captured is not None
        if outcome.completed:
            self.completed.add(outcome.protocol)
        if outcome.refused:
            self.refused.add(outcome.protocol)
        names = _Names(outcome.captured or ())
        keys = {id(thing): thing for thing in m.keep}
        for sites in (outcome.first_sites or {}, m.sites):
            for (number, key), site in sites.items():
                self._bound(site, names.of(keys.get(number), key), names)
        for moved in (outcome.first_moved or {}, m.moved):
            for number, site in moved.items():
                self._note(site, names.tensors.get(number) or _home(keys.get(number)), how(site.binding))
        for number, site in m.copies.items():
            self._note(site, names.storages.get(number) or _home(site.old), How.COPIED)

    def written(self) -> tuple[Written, ...]:
        """In the order of the source."""
        found = [(place, path, tuple(h for h in How if h in hows)) for (place, path), hows in self._written.items()]
        return tuple(Written(*one) for one in sorted(found))

    def _bound(self, site: Site, path: str, names: _Names) -> None:
        value = _tensor(site.value)
        if site.binding is Binding.RELEASE:
            if _tensor(site.old) is not None or path in names.paths:
                self._note(site, path, How.DELETED)
        elif value is not None or (isinstance(site.value, ListValue) and any(map(_tensor, site.value.items))):
            self._note(site, path, how(site.binding))
        elif isinstance(site.value, Obj) and site.value.born and id(site.value) in names.holders:
            self._note(site, path, How.BUILT)

    def _note(self, site: Site, path: str, what: How) -> None:
        if path:
            self._written.setdefault((place_of(site.module, site.statement), path), set()).add(what)


class _Names:
    """The paths of what was captured: of holders by identity, of tensors by identity, of storages by number."""

    def __init__(self, cells: Iterable[Captured]) -> None:
        self.holders: dict[int, str] = {}
        self.tensors: dict[int, str] = {}
        self.storages: dict[int, str] = {}
        self.paths: set[str] = set()
        for cell in cells:
            path = ""
            for edge in cell.edges:
                if edge.holder is not None:
                    self.holders.setdefault(id(edge.holder), path)
                path += edge.text
            self.paths.add(path)
            self.tensors.setdefault(id(cell.tensor), path)
            self.storages.setdefault(cell.storage.number, path)

    def of(self, holder: object, key: object) -> str:
        """The path of a cell; where its holder holds nothing that was captured, by the name that the holder has itself.

        Empty for what hangs off an object that the hook made and nothing keeps.
        """
        prefix = self.holders.get(id(holder))
        if prefix is None:
            if isinstance(holder, Obj) and holder.born:
                return ""
            prefix = getattr(holder, "label", "") or getattr(holder, "name", "")
        if isinstance(holder, Obj) or hasattr(holder, "qualified"):
            return f"{prefix}.{key}" if not str(key).startswith("[") else f"{prefix}{key}"
        return f"{prefix}[{key!r}]" if prefix else ""


def _tensor(value: Value | None) -> Tensor | None:
    return value.tensor if isinstance(value, Unknown) else value if isinstance(value, Tensor) else None


def _home(thing: object) -> str:
    """Where a tensor stood before the hook; empty for one that stands in no cell, such as a shallow copy."""
    return thing.home if isinstance(thing, Tensor) else ""
