"""All hooks of a tree, in as many processes as asked for."""

from __future__ import annotations

import gc
import multiprocessing
import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rebindlint.execution.compare import compare
from rebindlint.execution.oracle import Explorer, Oracle
from rebindlint.execution.places import place_of
from rebindlint.execution.twice import Outcome, execute_twice
from rebindlint.index import Hook, Index, find_hooks
from rebindlint.index.readers import Readers
from rebindlint.model import Diagnostic, Protocol, Rebinding, Severity, Value

if TYPE_CHECKING:
    from rebindlint.config import Config

__all__ = ["Executed", "execute_hooks"]

MAX_EXECUTIONS = 48
MAX_AIMLESS = 10  # paths that lead nowhere new, whatever they bind
MAX_FRUITLESS = 5  # paths in a row that lead nowhere new and bind nothing which an earlier one had not bound
_CHUNK = 3
_COLLECT_EVERY = 2  # hooks: an execution leaves cycles behind; syntax trees survive and are not looked at again


@dataclass(frozen=True, slots=True)
class Executed:
    """``executions``: paths along which hooks were executed; ``unresolved``: callee -> how often it could not be entered."""

    facts: tuple[Rebinding, ...]
    notes: tuple[Diagnostic, ...] = ()
    hooks: int = 0
    executions: int = 0
    unresolved: dict[str, int] = field(default_factory=dict)


def execute_hooks(
    index: Index, config: Config, *, jobs: int = 0, progress: Callable[[int, int], None] | None = None
) -> Executed:
    """Every hook of the index under the protocols that the configuration asks for. ``jobs`` 0: as many as there are cores."""
    hooks = find_hooks(index, config.hooks)
    protocols = (Protocol.DIRECT, Protocol.LAYERWISE)
    jobs = min(jobs or multiprocessing.cpu_count(), max(len(hooks) // _CHUNK, 1))
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 12_000))
    if jobs > 1 and "fork" in multiprocessing.get_all_start_methods():
        results = _in_processes(index, hooks, protocols, jobs, progress)
    else:
        results = []
        for number, hook in enumerate(hooks):
            results.append(execute_hook(index, hook, protocols))
            if progress is not None:
                progress(number + 1, len(hooks))
    return _merge(results)


_shared: tuple[Index, Sequence[Hook], tuple[Protocol, ...]] | None = None


def _in_processes(
    index: Index,
    hooks: Sequence[Hook],
    protocols: tuple[Protocol, ...],
    jobs: int,
    progress: Callable[[int, int], None] | None,
) -> list[Executed]:
    """Forked workers share the index that was built before; results come back in order."""
    global _shared
    _shared = (index, hooks, protocols)
    results: list[Executed] = []
    gc.collect()
    gc.freeze()  # the collector must not touch, and so copy, what the workers share
    try:
        with multiprocessing.get_context("fork").Pool(jobs, initializer=gc.disable) as pool:
            for executed in pool.imap(_work, range(len(hooks)), chunksize=_CHUNK):
                results.append(executed)
                if progress is not None:
                    progress(len(results), len(hooks))
    finally:
        gc.unfreeze()
        _shared = None
    return results


def _work(number: int) -> Executed:
    assert _shared is not None
    index, hooks, protocols = _shared
    executed = execute_hook(index, hooks[number], protocols)
    if number % _COLLECT_EVERY == 0:
        gc.collect(0)
    return executed


def execute_hook(index: Index, hook: Hook, protocols: tuple[Protocol, ...]) -> Executed:
    """One hook along every arm that was seen, within the budget. Where no path gets through, once more with failing callees passed over."""
    search = _Search(index, hook, protocols)
    search.explore()
    if not search.captures:
        search.tolerant = True
        search.explore()
    return Executed(tuple(search.facts.values()), search.notes(), 1, search.executions, search.unresolved)


class _Search:
    """The executions of one hook and what they found."""

    def __init__(self, index: Index, hook: Hook, protocols: tuple[Protocol, ...]) -> None:
        self.index, self.hook, self.protocols = index, hook, protocols
        self.readers = Readers.of(index)
        self.tolerant = False
        self.captures = 0
        self.executions = 0
        self.spent = ""
        self.bound: set[Hashable] = set()
        self.seen: set[tuple[object, ...]] = set()
        self.settled: set[tuple[object, ...]] = set()  # found on two paths that were tried under every protocol
        self.facts: dict[tuple[object, ...], Rebinding] = {}
        self.unresolved: dict[str, int] = {}

    def explore(self) -> None:
        explorer = Explorer(MAX_EXECUTIONS)
        fruitless = aimless = 0
        for plan, default in explorer.plans():
            oracle = Oracle(plan, default, explorer.avoid)
            outcome = execute_twice(
                self.index, self.hook, oracle, self.protocols[0], tolerant=self.tolerant, known=self.bound
            )
            explorer.covered |= outcome.interpreter.covered
            if outcome.captured is None and not outcome.over_budget:
                explorer.backtrack(oracle, default)
            else:
                explorer.record(oracle, default)
            self._collect(outcome, oracle, default)
            aimless += not explorer.promising
            fruitless = 0 if outcome.captured else fruitless + (not explorer.promising)
            if fruitless >= MAX_FRUITLESS or aimless >= MAX_AIMLESS:
                explorer.only_promising = True
        self.executions += explorer.executions
        if explorer.exhausted:
            self.spent = f"after {explorer.executions} paths"

    def _collect(self, outcome: Outcome, oracle: Oracle, default: int) -> None:
        self.captures += outcome.captured is not None
        if outcome.over_budget:
            self.spent = "because a path took too many steps"
        elif outcome.interpreter.hit_depth:
            self.spent = self.spent or "where calls nest too deeply"
        for name, count in outcome.interpreter.unresolved.items():
            self.unresolved[name] = self.unresolved.get(name, 0) + count
        found = list(compare(outcome, self.hook, self.readers))
        if outcome.refused:
            found += self._again(oracle, default, self.protocols[0], restored=True)
        new = {fact.key for fact in found} - self.settled
        if new or outcome.refused:
            self.settled |= {key for key in new if key in self.seen}
            self.seen |= new
            for protocol in self.protocols[1:]:
                found += self._again(oracle, default, protocol)
        for fact in found:
            known = self.facts.get(fact.key)
            self.facts[fact.key] = fact if known is None else combine(known, fact)

    def _again(self, oracle: Oracle, default: int, protocol: Protocol, *, restored: bool = False) -> list[Rebinding]:
        """The same path under another protocol."""
        answers = Oracle(dict(oracle.answers), default)
        outcome = execute_twice(self.index, self.hook, answers, protocol, restored=restored, tolerant=self.tolerant)
        return list(compare(outcome, self.hook, self.readers))

    def notes(self) -> tuple[Diagnostic, ...]:
        """What was not judged: silence about a hook must not mean that its execution gave up."""
        reason = self.spent or ("" if self.captures else "because no path through it could be followed to its end")
        if not reason:
            return ()
        message = f"the execution of `{self.hook.name}` stopped {reason}: what it did not reach is not judged"
        place = place_of(self.hook.function.module, self.hook.function.node)
        return (Diagnostic("RB003", "budget-exhausted", message, Severity.NOTE, place, hook=self.hook.name),)


def combine(left: Rebinding, right: Rebinding) -> Rebinding:
    """One fact for two paths to the same finding: what a fix relies on must hold on both."""
    return replace(
        left,
        protocols=left.protocols | right.protocols,
        value=left.value if left.value is right.value else Value.UNKNOWN,
        certain=left.certain or right.certain,
        weight_dependent=left.weight_dependent or right.weight_dependent,
        receiver_is_module=left.receiver_is_module and right.receiver_is_module,
        existed_before=left.existed_before or right.existed_before,
        may_alias=left.may_alias or right.may_alias,
        changes_strides=left.changes_strides or right.changes_strides,
        same_layout=left.same_layout and right.same_layout,
        value_is_parameter=left.value_is_parameter and right.value_is_parameter,
        zeroed=left.zeroed and right.zeroed,
        source_lost=left.source_lost or right.source_lost,
        guarded=left.guarded or right.guarded,
    )


def _merge(results: list[Executed]) -> Executed:
    facts: dict[tuple[object, ...], Rebinding] = {}
    unresolved: dict[str, int] = {}
    for result in results:
        for fact in result.facts:
            known = facts.get(fact.key)
            facts[fact.key] = fact if known is None else combine(known, fact)
        for name, count in result.unresolved.items():
            unresolved[name] = unresolved.get(name, 0) + count
    notes = tuple(note for result in results for note in result.notes)
    return Executed(
        tuple(facts.values()), notes, sum(r.hooks for r in results), sum(r.executions for r in results), unresolved
    )
