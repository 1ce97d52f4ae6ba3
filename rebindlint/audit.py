"""Every hook with the cells that it writes and the verdict under each protocol: the table that maintainers make by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from rebindlint.check import diagnose
from rebindlint.concerned import execute_concerned
from rebindlint.config import Config
from rebindlint.execution.places import place_of
from rebindlint.execution.run import PROTOCOLS, Executed, HookExecuted, execute_each
from rebindlint.execution.written import Ledger, Written, how
from rebindlint.index import Hook, Index, build_index
from rebindlint.index.hooks import POST_LOAD
from rebindlint.model import Binding, Diagnostic, Place, Protocol
from rebindlint.pipeline import Discovered, Progress
from rebindlint.registry import rules
from rebindlint.selection import select
from rebindlint.suppress import apply_suppressions

__all__ = ["Audit", "CellAudit", "HookAudit", "audit"]

Codes = dict[Protocol, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class CellAudit:
    """A cell, a statement that writes it, and the codes of what a check finds wrong with that, by protocol."""

    written: Written
    codes: Codes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HookAudit:
    """``kind`` is why the function is a hook. ``incomplete`` says what was not judged; ``refuses`` are protocols under which it
    raises when it runs again; ``elsewhere``: it is judged with the hooks that call it."""

    name: str
    owner: str
    kind: str
    place: Place
    cells: tuple[CellAudit, ...]
    codes: Codes
    refuses: frozenset[Protocol] = frozenset()
    elsewhere: bool = False
    incomplete: str = ""
    executions: int = 0


@dataclass(frozen=True, slots=True)
class Audit:
    hooks: tuple[HookAudit, ...]
    protocols: tuple[Protocol, ...]


def audit(discovered: Discovered, config: Config, progress: Progress | None = None) -> Audit:
    """Executes the hooks in the given files and tells about them. Rules that the configuration leaves out are not asked.

    Hooks of other files are executed where they may call into the given ones: some hooks are judged with those that call them.
    """
    index = build_index(discovered.sources, config)
    chosen = config.reload not in (None, "", "all")
    protocols = tuple(p for p in PROTOCOLS if not chosen or p == config.reload)
    if {source.shown for source in discovered.sources} == discovered.targets:
        every = execute_each(index, config, jobs=config.jobs, progress=progress, watch=Ledger)
    else:
        every = execute_concerned(
            index,
            config,
            lambda hooks: [h.function for h in hooks if h.function.module.shown in discovered.targets],
            jobs=config.jobs,
            progress=progress,
            watch=Ledger,
        )
    inside = (one for one in every if one.hook.function.module.shown in discovered.targets)
    return Audit(tuple(_audited(index, one, config, protocols, discovered.read) for one in inside), protocols)


def _audited(
    index: Index, one: HookExecuted, config: Config, protocols: Sequence[Protocol], read: Callable[[str], str]
) -> HookAudit:
    ledger, hook, owner = one.watch, one.hook, one.hook.receiver
    assert isinstance(ledger, Ledger)
    found = select(diagnose(one.executed.facts, rules(), index, config), config)
    kept = {(d.place, d.code, d.attribute) for d in apply_suppressions(found, read)}
    suppressed = {id(d) for d in found if (d.place, d.code, d.attribute) not in kept}
    return HookAudit(
        hook.name,
        f"{owner.module.name}.{owner.name}" if owner is not None else hook.function.module.name,
        _kind(index, hook),
        place_of(hook.function.module, hook.function.node),
        _cells(ledger.written(), found, protocols, suppressed),
        {p: _codes(found, p, suppressed) for p in protocols},
        frozenset(ledger.refused - ledger.completed),
        one.elsewhere,
        _incomplete(one.executed),
        one.executed.executions,
    )


def _kind(index: Index, hook: Hook) -> str:
    """Why the function runs after loading; the kinds are those of ``docs/explanations.md``."""
    if hook.from_loading:
        return "loading"
    if hook.by_name:
        return "called"
    if hook.function.name not in POST_LOAD:
        return "configured"
    if hook.after_model:
        return "model"
    return "module" if hook.receiver is not None and index.is_module(hook.receiver) else "method"


def _incomplete(executed: Executed) -> str:
    return executed.notes[0].message if executed.notes else ""


def _codes(found: Iterable[Diagnostic], protocol: Protocol, suppressed: set[int]) -> tuple[str, ...]:
    """Each code once, the suppressed ones marked."""
    codes = {d.code: id(d) in suppressed for d in found if protocol in d.reload and id(d) in suppressed}
    codes |= {d.code: False for d in found if protocol in d.reload and id(d) not in suppressed}
    return tuple(sorted(f"{code} (suppressed)" if is_suppressed else code for code, is_suppressed in codes.items()))


def _cells(
    written: Sequence[Written], found: Sequence[Diagnostic], protocols: Sequence[Protocol], suppressed: set[int]
) -> tuple[CellAudit, ...]:
    """Each finding stands beside the statement that it names, else beside the first that writes its cell, else on a line of its own."""
    beside: dict[Written, list[Diagnostic]] = {one: [] for one in written}
    for diagnostic in found:
        same = [one for one in beside if one.path == diagnostic.attribute]
        exact = [one for one in same if one.place == diagnostic.place]
        if exact or same:
            beside[(exact or same)[0]].append(diagnostic)
        else:
            binding = diagnostic.fact.binding if diagnostic.fact is not None else Binding.ATTRIBUTE
            own = Written(diagnostic.place, diagnostic.attribute, (how(binding),))
            beside.setdefault(own, []).append(diagnostic)
    return tuple(CellAudit(one, {p: _codes(beside[one], p, suppressed) for p in protocols}) for one in sorted(beside))
