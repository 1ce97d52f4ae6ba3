"""The recorder: a dispatch mode that sees every operator of one step, with the real tensors.

It notes which storages the step uses but did not make: exactly those whose address a graph of the step would hold,
each with operator, argument and the line of the host. On request it also keeps the operators, so that the step can be
replayed on the same storages.

Operators whose kernel is written in Python are looked into: their kernel is run with the mode on again. Taken as one
opaque operator, such a kernel would read the *live* attributes of a module on replay, and its inputs would be missed.
Only aliases are kept, never the host's own tensors, so that owners stay countable.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rebindlint.runtime.operators import (
    WAITS,
    OperatorFacts,
    backend_keys,
    facts_of,
    flat,
    named_arguments,
    static_after_all,
)
from rebindlint.runtime.sites import RawSite, raw_sites
from rebindlint.runtime.snapshot import Layout
from rebindlint.runtime.storages import alias, is_wrapper, storage_of

__all__ = ["External", "NativeObject", "Obstacle", "Operation", "Recorder", "Use"]


@dataclass(frozen=True, slots=True)
class Use:
    """One operator of the step that takes a tensor on the storage."""

    operator: str
    argument: str
    site: RawSite | None
    layout: Layout
    writes: bool
    view: bool  # only makes a view of it


@dataclass(slots=True)
class External:
    """A storage that the step uses and did not make. ``tensor`` is our alias and keeps the memory.

    ``changes`` when a run was seen to change it although no operator declares that it writes there.
    """

    number: int
    tensor: torch.Tensor
    address: int
    nbytes: int
    uses: list[Use] = field(default_factory=list)
    changes: bool = False

    @property
    def read(self) -> bool:
        return any(not use.writes for use in self.uses)

    @property
    def written(self) -> bool:
        return self.changes or any(use.writes for use in self.uses)

    @property
    def reader(self) -> Use:
        """The use to name in a finding: the first that computes with the tensor rather than making a view of it."""
        computing = [use for use in self.uses if not use.view]
        return next((use for use in computing if not use.writes), (computing or self.uses)[0])


@dataclass(frozen=True, slots=True)
class NativeObject:
    """A TorchScript object that the step passes to an operator: its weights are no tensors, only a replay can judge
    them.
    """

    operator: str
    argument: str
    site: RawSite | None


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a graph could not hold the step. ``waits`` when it is a value that the host waits for."""

    reason: str
    site: RawSite | None
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One recorded operator; ``made`` are the results to copy into on replay: (index among the results, our alias).

    With ``constant`` (a tensor that was built from Python data) the contents are put back instead of running anything.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    made: tuple[tuple[int, torch.Tensor], ...]
    constant: torch.Tensor | None = None


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records what runs under it. ``keep_operations`` makes the record replayable (and keeps every intermediate alive).

    ``look_inside`` names operator namespaces whose kernels are Python although ``torch.library`` does not know them.
    """

    def __init__(self, *, keep_operations: bool, look_inside: Collection[str] = ()) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[Operation] = []
        self.externals: dict[int, External] = {}
        self.native: list[NativeObject] = []
        self.obstacles: list[Obstacle] = []
        self.held: Counter[int] = Counter()  # our aliases by number of the storage
        self.count = 0
        self._keep = keep_operations
        self._skipped: list[torch.Tensor] = []  # what skipped operators made: later operators write into it
        self._look_inside = frozenset(look_inside)
        self._made: set[int] = set()
        self._facts: dict[Any, OperatorFacts] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if any(is_wrapper(kind) for kind in types):
            return NotImplemented  # the subclass unwraps itself; its inner operators come here again
        kwargs = kwargs or {}
        facts = self._facts.get(func)
        if facts is None:
            facts = self._facts[func] = facts_of(func, self._look_inside)
        if facts.inside and (keys := backend_keys(args, kwargs)) is not None:
            with self:
                return func.redispatch(keys, *args, **kwargs)
        result = func(*args, **kwargs)
        self._note(func, facts, args, kwargs, result)
        return result

    def _note(
        self, func: Any, facts: OperatorFacts, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        site = next(iter(raw_sites(sys._getframe(2), 1)), None)
        self.count += 1
        if facts.obstacle and not static_after_all(func, args, kwargs):
            self.obstacles.append(Obstacle(f"{func} {facts.obstacle}", site, facts.obstacle == WAITS))
        inputs = self._inputs(str(func), facts, args, kwargs, site)
        made = [
            (index, tensor, storage._cdata)
            for index, tensor in enumerate(flat(result))
            if isinstance(tensor, torch.Tensor)
            and (storage := storage_of(tensor)) is not None
            and storage._cdata not in inputs
        ]
        tensors = any(isinstance(tensor, torch.Tensor) for tensor in flat(result))
        view = tensors and not made and not facts.mutable and not facts.lift
        if facts.lift:
            self._made |= inputs.keys()
        for number, uses in inputs.items():
            if number not in self._made:
                self._note_uses(number, uses, str(func), facts, site, view)
        self._made.update(number for _, _, number in made)
        if not self._keep or view:
            return
        if facts.lift:
            self._keep_constant(func, result)
        elif facts.uninitialised:
            self._skipped.extend(self.hold(tensor) for _, tensor, _ in made)
        else:
            kept = {key: self._kept(value) for key, value in kwargs.items()}
            aliases = tuple((index, self.hold(tensor)) for index, tensor, _ in made)
            self.operations.append(Operation(func, tuple(self._kept(value) for value in args), kept, aliases))

    def _inputs(
        self, name: str, facts: OperatorFacts, args: tuple[Any, ...], kwargs: dict[str, Any], site: RawSite | None
    ) -> dict[int, list[tuple[str, torch.Tensor]]]:
        """Argument and tensor by number of the storage; native objects and tensors that cannot be followed are noted."""
        inputs: dict[int, list[tuple[str, torch.Tensor]]] = {}
        for argument, value in named_arguments(facts, args, kwargs):
            if isinstance(value, torch.ScriptObject):
                self.native.append(NativeObject(name, argument, site))
            elif isinstance(value, torch.Tensor) and not value.is_meta:
                storage = storage_of(value)
                if storage is None:
                    self.obstacles.append(Obstacle(f"{name} takes a tensor that has no storage ({value.layout})", site))
                else:
                    inputs.setdefault(storage._cdata, []).append((argument, value))
        return inputs

    def _note_uses(
        self,
        number: int,
        uses: list[tuple[str, torch.Tensor]],
        name: str,
        facts: OperatorFacts,
        site: RawSite | None,
        view: bool,
    ) -> None:
        external = self.externals.get(number)
        if external is None:
            storage = uses[0][1].untyped_storage()
            external = External(number, self.hold(uses[0][1]), storage.data_ptr(), storage.nbytes())
            self.externals[number] = external
        for argument, tensor in uses:
            external.uses.append(Use(name, argument, site, Layout.of(tensor), argument in facts.written, view))

    def hold(self, tensor: torch.Tensor) -> torch.Tensor:
        """An alias that counts as ours."""
        storage = storage_of(tensor)
        if storage is not None:
            self.held[storage._cdata] += 1
        return alias(tensor)

    def _keep_constant(self, func: Any, result: torch.Tensor) -> None:
        held = self.hold(result)
        self.operations.append(Operation(func, (), {}, ((0, held),), constant=held.clone()))

    def _kept(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.hold(value)
        if isinstance(value, (list, tuple)):
            return [self._kept(item) for item in value]
        return value
