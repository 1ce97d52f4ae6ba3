"""All hooks of a tree: each along its paths, and what the paths come to together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rebindlint.execution.called_hooks import without_called
from rebindlint.execution.compare import compare, nearest
from rebindlint.execution.exploration import Explorer
from rebindlint.execution.guards import decided_otherwise
from rebindlint.execution.oracle import Oracle
from rebindlint.execution.parallel import for_each
from rebindlint.execution.places import place_of
from rebindlint.execution.twice import Outcome, execute_twice
from rebindlint.execution.unloadable import laid_out_otherwise
from rebindlint.execution.unresolved import Calls, Unresolved, merged, resolved_places
from rebindlint.index import Hook, Index, find_hooks, find_lazy, lazy_hooks
from rebindlint.index.readers import Readers
from rebindlint.model import Diagnostic, Hazard, Protocol, Rebinding, Severity, Value

if TYPE_CHECKING:
    from rebindlint.config import Config

__all__ = [
    "PROTOCOLS",
    "Executed",
    "HookExecuted",
    "Watch",
    "execute_each",
    "execute_hook",
    "execute_hooks",
    "execute_lazy",
    "protocols_of",
    "without_called",
]

PROTOCOLS = (Protocol.DIRECT, Protocol.LAYERWISE)
MAX_EXECUTIONS = 72  # paths of a hook
MAX_GUARDED = 2  # paths tried under every protocol because of one and the same guard
MAX_PUT_BACK = 3  # paths of a hook that are executed again with the layout of one parameter put back
MAX_LAZY = 36  # paths through run-time code that builds something when it is first needed
MAX_CUT = 12  # and through a guard alone
MAX_AIMLESS = 6  # paths that lead nowhere new, whatever they bind
MAX_FRUITLESS = 3  # paths in a row that lead nowhere new and bind nothing which an earlier one had not bound


@dataclass(frozen=True, slots=True)
class Executed:
    """``executions``: paths along which hooks were executed; ``sampled``: hooks of which not every arm that binds nothing was taken."""

    facts: tuple[Rebinding, ...]
    notes: tuple[Diagnostic, ...] = ()
    hooks: int = 0
    executions: int = 0
    unresolved: tuple[Unresolved, ...] = ()
    sampled: int = 0
    entered: frozenset[tuple[int, bool]] = frozenset()  # numbers of hooks that were called; on an object just made
    judged: frozenset[tuple[str, int, str]] = frozenset()  # cells that callees bound and that were compared
    new_below: frozenset[str] = frozenset()  # classes below which it makes objects whose hooks it calls
    # and those below which it keeps them, with who makes them, and the protocol
    kept_below: frozenset[tuple[str, str, Protocol]] = frozenset()


Watch = Callable[[Outcome, Sequence[Rebinding]], None]  # called with every execution and the facts that it came to


def execute_hooks(
    index: Index, config: Config, *, jobs: int = 0, progress: Callable[[int, int], None] | None = None
) -> Executed:
    """Every hook of the index under the protocols that the configuration asks for. ``jobs`` 0: as many as there are cores."""
    hooks, places = find_hooks(index, config.hooks), find_lazy(index)
    protocols = protocols_of(config)
    index.roots = {id(hook.function.node): number for number, hook in enumerate(hooks)}

    def one(number: int) -> Executed:
        if number < len(hooks):
            return execute_hook(index, hooks[number], protocols)
        return replace(_merge(execute_lazy(index, lazy_hooks(index, places[number - len(hooks)]))), hooks=0)

    results = for_each(len(hooks) + len(places), one, jobs=jobs, progress=progress)
    return _merge([*without_called(index, hooks, results[: len(hooks)]), *results[len(hooks) :]])


def execute_lazy(index: Index, hooks: Sequence[Hook]) -> list[Executed]:
    """Run-time code that builds something when it is first needed. Where the whole function shows it, its parts are left out."""
    found: list[Executed] = []
    shown: set[int] = set()
    for hook in hooks:
        row = hook.function.node.lineno
        if not (hook.cut and row in shown):
            executed = execute_hook(index, hook, PROTOCOLS)
            if executed.facts and Readers.of(index).is_called_by_nobody(hook.function):
                executed = replace(executed, facts=())
            found.append(executed)
            if executed.facts and not hook.cut:
                shown.add(row)
    return found


def protocols_of(config: Config) -> tuple[Protocol, ...]:
    """Sleeping is looked at when it is asked for; the others in any case."""
    return (*PROTOCOLS, Protocol.SLEEP) if config.reload in ("sleep", "all") else PROTOCOLS


@dataclass(frozen=True, slots=True)
class HookExecuted:
    """``elsewhere``: the hook is judged with those that call it, so nothing is found here. ``watch`` is what watched its executions."""

    hook: Hook
    executed: Executed
    elsewhere: bool = False
    watch: Watch | None = None


def execute_each(
    index: Index,
    config: Config,
    *,
    jobs: int = 0,
    progress: Callable[[int, int], None] | None = None,
    watch: Callable[[], Watch] | None = None,
) -> list[HookExecuted]:
    """Every hook by itself, in the order of the source; ``watch`` makes the watch of one hook, which has to pickle."""
    hooks = find_hooks(index, config.hooks)
    index.roots = {id(hook.function.node): number for number, hook in enumerate(hooks)}

    def one(number: int) -> tuple[Executed, Watch | None]:
        watching = watch() if watch is not None else None
        return execute_hook(index, hooks[number], protocols_of(config), watching), watching

    results = for_each(len(hooks), one, jobs=jobs, progress=progress)
    kept = without_called(index, hooks, [executed for executed, _ in results])
    return [
        HookExecuted(hook, executed, executed is not before, watching)
        for hook, executed, (before, watching) in zip(hooks, kept, results, strict=True)
    ]


def _without(bindings: dict[int, int], standing: set[int]) -> dict[int, int]:
    return {statement: asked for statement, asked in bindings.items() if statement not in standing}


def execute_hook(index: Index, hook: Hook, protocols: tuple[Protocol, ...], watch: Watch | None = None) -> Executed:
    """One hook along every arm that was seen, within the budget. Where no path gets through, once more with failing callees passed over."""
    search = _Search(index, hook, protocols, watch)
    search.explore()
    if not search.captures and not hook.lazy:
        search.tolerant = True
        search.explore()
    calls = resolved_places(search.unresolved)
    facts = tuple(search.facts.values())
    if hook.from_loading:
        facts = tuple(replace(fact, from_loading=True) for fact in facts)
    if _is_doubtful(index, hook):
        facts = tuple(replace(fact, certain=False) for fact in facts)
    return Executed(
        facts,
        search.notes(),
        1,
        search.executions,
        calls,
        int(search.sampled),
        frozenset(search.entered),
        frozenset(search.judged),
        frozenset(search.new_below),
        frozenset(search.kept_below),
    )


def _is_doubtful(index: Index, hook: Hook) -> bool:
    """Whether what the hook binds may be no hazard, however sure it is that it is bound.

    That is so for a model which only a framework outside the engine reloads, and for a loading function of a plugin: which
    of the model's functions its engine captures, and whether it captures them again after that load, is not in the tree.
    """
    module = hook.function.module.name
    return index.is_never_reloaded(module) or (hook.from_loading and index.is_of_plugin(module))


class _Search:
    """The executions of one hook and what they found."""

    def __init__(self, index: Index, hook: Hook, protocols: tuple[Protocol, ...], watch: Watch | None = None) -> None:
        self.index, self.hook, self.protocols, self.watch = index, hook, protocols, watch
        index.results = {}  # what one hook finds must not hang on which ones were looked at before
        self.readers = Readers.of(index)
        self.own = index.protocol_of(hook.function.module.name)  # by which the tree's own engine reloads
        self.tolerant = False
        self.captures = 0
        self.executions = 0
        self.spent = ""
        self.bound: set[Hashable] = set()
        self.seen: set[tuple[object, ...]] = set()
        self.settled: set[tuple[object, ...]] = set()  # found on two paths that were tried under every protocol
        self.guards: dict[int, int] = {}  # condition that sent a second run another way -> on how many paths
        self.put_back: dict[str, int] = {}  # parameter that was given its layout back -> on how many paths
        self.facts: dict[tuple[object, ...], Rebinding] = {}
        self.unresolved: Calls = {}
        self.sampled = False
        self.entered: set[tuple[int, bool]] = set()
        self.judged: set[tuple[str, int, str]] = set()
        self.new_below: set[str] = set()
        self.kept_below: set[tuple[str, str, Protocol]] = set()

    def explore(self) -> None:
        limit = MAX_CUT if self.hook.cut else MAX_LAZY if self.hook.lazy else MAX_EXECUTIONS
        explorer = Explorer(limit)
        fruitless = aimless = 0
        for plan, default in explorer.plans():
            oracle = Oracle(plan, default, explorer.avoid)
            oracle.aimed = explorer.aimed
            outcome = execute_twice(
                self.index, self.hook, oracle, self.protocols[0], tolerant=self.tolerant, known=self.bound
            )
            explorer.covered |= outcome.interpreter.covered
            if outcome.captured is None and not outcome.over_budget:
                explorer.backtrack(oracle, default)
            else:
                standing = {id(site.statement) for site in (outcome.first_sites or {}).values()}
                explorer.effective |= standing
                explorer.record(oracle, default, _without(outcome.interpreter.bindings, standing))
            if self._collect(outcome, oracle, default):
                explorer.spare(oracle, default)
            aimless += not explorer.promising
            if outcome.captured == []:
                explorer.made_no_difference()
            fruitless = 0 if outcome.captured else fruitless + (not explorer.promising)
            if fruitless >= MAX_FRUITLESS or aimless >= MAX_AIMLESS:
                explorer.only_promising = True
        self.executions += explorer.executions
        self.sampled = self.sampled or explorer.sampled
        if explorer.exhausted:
            self.spent = f"after {explorer.executions} paths"

    def _collect(self, outcome: Outcome, oracle: Oracle, default: int) -> bool:
        """Take in what one execution came to. Whether it found something that the engine's own reload would show on another path."""
        self.captures += outcome.captured is not None
        if outcome.over_budget:
            self.spent = "because a path took too many steps"
        elif outcome.interpreter.hit_depth:
            self.spent = self.spent or "where calls nest too deeply"
        for name, count in outcome.interpreter.unresolved.items():
            self.unresolved[name] = self.unresolved.get(name, 0) + count
        self.entered |= outcome.interpreter.entered
        self.new_below |= outcome.interpreter.new_below
        if (outcome.completed or outcome.refused) and outcome.interpreter.entered:
            self.judged |= _judged(outcome)
        found = self._compared(outcome)
        doubtful = False
        if outcome.refused and not self.hook.lazy:
            found += self._again(oracle, default, self.protocols[0], restored=True)
            doubtful = self.own is Protocol.DIRECT and any(
                f.key not in self.facts or self.facts[f.key].restored for f in found
            )
        elif changed := self._laid_out_otherwise(outcome):
            again = self._again(oracle, default, self.protocols[0], restored=True)
            moved = [f for f in again if f.hazard is Hazard.ADDRESS and f.cell.path in changed]
            self.put_back.update((fact.cell.path, MAX_PUT_BACK) for fact in moved)  # one path is enough
            found += moved
        if self.hook.lazy:  # no reload runs it again
            found = [replace(fact, protocols=frozenset(self.protocols)) for fact in found]
        new = {fact.key for fact in found} - self.settled
        if Protocol.SLEEP in self.protocols and (outcome.completed or outcome.refused) and not self.hook.lazy:
            found += self._again(oracle, default, Protocol.SLEEP)
        if (new or outcome.refused or self._goes_another_way(outcome)) and not self.hook.lazy:
            self.settled |= {key for key in new if key in self.seen}
            self.seen |= new
            for protocol in self._others():
                found = self._joined(found, self._again(oracle, default, protocol), protocol)
        for fact in found:
            known = self.facts.get(fact.key)
            self.facts[fact.key] = fact if known is None else combine(known, fact)
        return doubtful

    def _laid_out_otherwise(self, outcome: Outcome) -> Set[str]:
        """Parameters of the hook that have to be given the checkpoint's layout back, where the engine itself reloads otherwise."""
        if self.own is Protocol.DIRECT or self.hook.lazy or self.hook.from_loading:
            return set()
        changed = {p for p in laid_out_otherwise(outcome) if self.put_back.get(p, 0) < MAX_PUT_BACK}
        for path in changed:
            self.put_back[path] = self.put_back.get(path, 0) + 1
        return changed

    def _others(self) -> list[Protocol]:
        """The protocols that are left. What a layerwise reload does not call again is called where the tree's engine has no such reload."""
        others: list[Protocol] = [p for p in self.protocols[1:] if p is not Protocol.SLEEP]
        return [] if self.hook.after_model and self.own is Protocol.DIRECT else others

    def _goes_another_way(self, outcome: Outcome) -> bool:
        """Whether a condition kept the second run from what the first did: under another protocol it may not."""
        if not outcome.completed or self.hook.after_model:
            return False
        new = False
        for condition in decided_otherwise(outcome.interpreter, outcome):
            tried = self.guards.get(condition, 0)
            self.guards[condition] = tried + 1
            new = new or tried < MAX_GUARDED
        return new

    def _joined(self, found: list[Rebinding], more: list[Rebinding], protocol: Protocol) -> list[Rebinding]:
        """A hook that the reload does not call again leaves what it derived as it was: the same cells, one finding each."""
        if not (self.hook.after_model and protocol is Protocol.LAYERWISE):
            return found + more
        stale = {fact.cell.path: fact for fact in more}
        both = [
            replace(f, protocols=f.protocols | {protocol}, not_called=True) if f.cell.path in stale else f
            for f in found
        ]
        known = {fact.cell.path for fact in found}
        return both + [replace(fact, not_called=True) for path, fact in stale.items() if path not in known]

    def _again(self, oracle: Oracle, default: int, protocol: Protocol, *, restored: bool = False) -> list[Rebinding]:
        """The same path under another protocol."""
        answers = Oracle(dict(oracle.answers), default)
        outcome = execute_twice(self.index, self.hook, answers, protocol, restored=restored, tolerant=self.tolerant)
        found = self._compared(outcome)
        return [replace(fact, restored=True) for fact in found] if restored else found

    def _compared(self, outcome: Outcome) -> list[Rebinding]:
        self.kept_below |= {(*kept, outcome.protocol) for kept in outcome.interpreter.kept_below}
        found = list(compare(outcome, self.hook, self.readers))
        if self.watch is not None:
            self.watch(outcome, found)
        return found

    def notes(self) -> tuple[Diagnostic, ...]:
        """What was not judged: silence about a hook must not mean that its execution gave up."""
        if self.hook.lazy:
            return ()
        reason = self.spent or ("" if self.captures else "because no path through it could be followed to its end")
        if not reason:
            return ()
        message = f"the execution of `{self.hook.name}` stopped {reason}: what it did not reach is not judged"
        place = place_of(self.hook.function.module, self.hook.function.node)
        return (Diagnostic("RB003", "budget-exhausted", message, Severity.NOTE, place, hook=self.hook.name),)


def _judged(outcome: Outcome) -> set[tuple[str, int, str]]:
    """The cells that functions called by the hook bound in the first run, and that were compared after the second."""
    found = set()
    for cell in outcome.captured or ():
        site = nearest(outcome.first_sites or {}, cell)
        if site is not None and len(site.chain) > 1:
            found.add((site.module.shown, getattr(site.statement, "lineno", 0), str(cell.last.key)))
    for edges, _ in outcome.numbers:
        site = (outcome.first_sites or {}).get((id(edges[-1].holder), edges[-1].key))
        if site is not None and len(site.chain) > 1:
            found.add((site.module.shown, getattr(site.statement, "lineno", 0), str(edges[-1].key)))
    return found


def combine(left: Rebinding, right: Rebinding) -> Rebinding:
    """One fact for two paths to the same finding: what a fix relies on must hold on both."""
    return replace(
        left,
        protocols=left.protocols | right.protocols,
        value=left.value if left.value is right.value else Value.UNKNOWN,
        certain=left.certain or right.certain,
        weight_dependent=left.weight_dependent or right.weight_dependent,
        from_loading=left.from_loading or right.from_loading,
        receiver_is_module=left.receiver_is_module and right.receiver_is_module,
        existed_before=left.existed_before or right.existed_before,
        may_alias=left.may_alias or right.may_alias,
        changes_strides=left.changes_strides or right.changes_strides,
        same_layout=left.same_layout and right.same_layout,
        value_is_parameter=left.value_is_parameter and right.value_is_parameter,
        zeroed=left.zeroed and right.zeroed,
        source_lost=left.source_lost or right.source_lost,
        restored=_only_restored(left, right),
        guarded=left.guarded or right.guarded,
    )


def _only_restored(*facts: Rebinding) -> bool:
    """Whether no plain direct reload shows it, but one that gives the checkpoint's dtype and shape back first."""
    direct = [fact for fact in facts if Protocol.DIRECT in fact.protocols]
    return bool(direct) and all(fact.restored for fact in direct)


def _merge(results: list[Executed]) -> Executed:
    facts: dict[tuple[object, ...], Rebinding] = {}
    for result in results:
        for fact in result.facts:
            known = facts.get(fact.key)
            facts[fact.key] = fact if known is None else combine(known, fact)
    notes = tuple(note for result in results for note in result.notes)
    return Executed(
        tuple(facts.values()),
        notes,
        sum(r.hooks for r in results),
        sum(r.executions for r in results),
        merged(call for result in results for call in result.unresolved),
        sum(r.sampled for r in results),
    )
