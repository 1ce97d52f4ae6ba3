"""Which event of the reload put a cell where it is: by the storage first, then by the object that holds it, then by
who holds that object.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final

from rebindlint.runtime.sites import Site, resolve
from rebindlint.runtime.snapshot import Cell
from rebindlint.runtime.watch import Event

__all__ = ["Blame", "blame"]

_AFTER_LOADING: Final = ("process_weights_after_loading", "post_load_weights", "finalize_*", "prepare_*")
_LOADING: Final = ("load_weights", "wake_up")
_BY_KIND: Final = {
    "data": ("RB102",),
    "set_": ("RB102",),
    "swap_tensors": ("RB102",),
    "register_parameter": ("RB103",),
    "register_buffer": ("RB103",),
    "delattr": ("RB106",),
}


@dataclass(frozen=True, slots=True)
class Blame:
    """The line that bound the cell (innermost first, empty when nobody saw it), and the static rules that speak of
    such lines.
    """

    rebound: tuple[Site, ...] = ()
    hook: str = ""
    rules: tuple[str, ...] = field(default=())

    def finding_fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"rebound": self.rebound, "hook": self.hook}
        if self.rules:
            fields["static_rules"] = self.rules
        return fields


def blame(before: Cell, after: Cell | None, events: Sequence[Event]) -> Blame:
    event, holder = _find(before, after, events)
    if event is None:
        return Blame(rules=("RB105",) if before.kind == "item" else ())
    chain = tuple(resolve(raw) for raw in event.chain)
    return Blame(chain, _hook(chain), _rules(event, holder, chain, after))


def _find(before: Cell, after: Cell | None, events: Sequence[Event]) -> tuple[Event | None, bool]:
    """The event, and whether the object that holds the cell was exchanged."""
    latest = list(reversed(events))
    if after is not None:
        on_storage = [event for event in latest if event.number == after.number]
        here = [event for event in on_storage if (event.owner_id, event.key) == (after.owner_id, after.key)]
        through = [event for event in on_storage if event.owner_id == after.tensor_id]  # p.data = ..., p.set_(...)
        for candidates in (through, here):
            if candidates:
                return candidates[0], _rebuilt(before, after, latest)
    else:
        on_storage = []
    holders = _holder_events(latest, [*before.holders, *(after.holders if after else ())])
    slot = next((e for e in latest if after is None and (e.owner_id, e.key) == (before.owner_id, before.key)), None)
    if slot is not None:
        return slot, False
    if holders is not None:
        return holders, True
    return (on_storage[0], False) if on_storage else (None, False)


def _rebuilt(before: Cell, after: Cell, latest: Sequence[Event]) -> bool:
    """Was the object that holds the cell exchanged for a new one?"""
    if before.owner_id != after.owner_id:
        return True
    return any((e.owner_id, e.key) in after.holders and e.value_id == after.owner_id for e in latest)


def _holder_events(latest: Sequence[Event], holders: Iterable[tuple[int, Any]]) -> Event | None:
    for holder in holders:  # the innermost object that was exchanged
        for event in latest:
            if (event.owner_id, event.key) == holder:
                return event
    return None


def _rules(event: Event, holder: bool, chain: tuple[Site, ...], after: Cell | None) -> tuple[str, ...]:
    if holder:
        return ("RB201",)
    if any(site.function.rpartition(".")[2] == "replace_parameter" for site in chain):
        return ("RB104",)
    if event.kind in _BY_KIND:
        return _BY_KIND[event.kind]
    if after is None:
        return ("RB106",)
    return ("RB103",) if event.parameter else ("RB101",)


def _hook(chain: tuple[Site, ...]) -> str:
    """The outermost hook in the chain, else the function that holds the line.

    Functions of a module that bear a hook's name drive the reload of a whole model: the hooks are the methods that
    they, or the loading of weights, call.
    """
    methods = [site.function for site in reversed(chain) if _is_method(site.function)]
    functions = [site.function for site in reversed(chain)]
    for candidates, patterns in (
        (methods, _AFTER_LOADING),
        (methods, _LOADING),
        (functions, (*_AFTER_LOADING, *_LOADING)),
    ):
        for function in candidates:
            if any(fnmatchcase(function.rpartition(".")[2], pattern) for pattern in patterns):
                return function
    return functions[-1] if functions else ""


def _is_method(function: str) -> bool:
    owner = function.rpartition(".")[0]
    return bool(owner) and not owner.endswith("<locals>")
