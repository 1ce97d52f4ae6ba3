"""What the process that runs the tree tells the one that reports: plain values that go through JSON. Needs no torch."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from rebindlint.runtime.sites import Site

__all__ = ["Change", "Memory", "ScenarioFacts", "Use", "from_json", "to_json"]


@dataclass(frozen=True, slots=True)
class Memory:
    """A storage; ``state`` is live, elsewhere (under another name), kept (by something outside the model), unowned."""

    address: int
    nbytes: int
    device: str
    state: str


@dataclass(frozen=True, slots=True)
class Use:
    """The operator that took the tensor in the step before the reload."""

    operator: str
    argument: str
    access: str
    site: Site | None


@dataclass(frozen=True, slots=True)
class Change:
    """One storage that the reload left: ``kind`` is dead (none of its names leads to it any more), split (some do, some
    do not) or relaid (same storage, other shape, strides or type).

    ``tensor`` is the path of the first name that moved, ``also`` the others; ``stayed`` still lead to the old storage.
    """

    kind: str
    tensor: str
    also: tuple[str, ...]
    stayed: tuple[str, ...]
    module: str
    old: Memory
    new: Memory | None
    layouts: tuple[str, str]
    rebound: tuple[Site, ...]
    hook: str
    rules: tuple[str, ...]
    reader: Use | None


@dataclass(frozen=True, slots=True)
class ScenarioFacts:
    """One layer, loaded and reloaded. ``error``: why it could not be (then there are no changes); ``absent``: the
    release has no such thing.

    ``step_error`` says where the step before the reload stopped; "" when it ran to its end, so that what it did not
    read is known.
    """

    method: str
    variant: str
    classes: tuple[str, ...] = ()
    place: Site | None = None  # the hook
    changes: tuple[Change, ...] = ()
    tensors: int = 0
    storages: int = 0
    reads: int = 0  # storages of the layer that the step read
    operators: int = 0
    step_error: str = ""
    error: str = ""
    absent: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def title(self) -> str:
        return f"{self.method} ({self.variant})" if self.variant else self.method


def to_json(facts: ScenarioFacts) -> dict[str, Any]:
    return dataclasses.asdict(facts)


def from_json(data: dict[str, Any]) -> ScenarioFacts:
    values = _tuples(data)
    values["changes"] = tuple(_change(change) for change in data["changes"])
    values["place"] = _site(data["place"])
    return ScenarioFacts(**values)


def _tuples(data: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}


def _change(data: dict[str, Any]) -> Change:
    values = _tuples(data)
    values["old"] = Memory(**data["old"])
    values["new"] = Memory(**data["new"]) if data["new"] else None
    values["rebound"] = tuple(Site(**site) for site in data["rebound"])
    values["reader"] = Use(**{**data["reader"], "site": _site(data["reader"]["site"])}) if data["reader"] else None
    return Change(**values)


def _site(data: dict[str, Any] | None) -> Site | None:
    return Site(**data) if data else None
