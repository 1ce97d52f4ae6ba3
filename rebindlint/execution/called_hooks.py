"""Hooks that other hooks call: what is found about them alone and what is not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rebindlint.execution.bounded import may_be_made
from rebindlint.model import Protocol, Rebinding, Value

if TYPE_CHECKING:
    from rebindlint.execution.run import Executed
    from rebindlint.index import Hook, Index
    from rebindlint.index.classes import ClassInfo

__all__ = ["without_called"]


def without_called(index: Index, hooks: Sequence[Hook], results: list[Executed]) -> list[Executed]:
    """Hooks that another one calls are judged there, in the state that they are called in, if nothing else calls them.

    That is so for a method that only its name makes a hook, for one that is given more than a layer, and for the hook of an
    object that each of its callers has just made: on its own it would be run twice on an object that no reload keeps. What
    such a hook binds on the layer stays all the same.
    """
    calls: dict[int, set[bool]] = {}
    callers: dict[int, set[str]] = {}
    for number, result in enumerate(results):
        for called, on_new in result.entered:
            if called != number:
                calls.setdefault(called, set()).add(on_new)
                callers.setdefault(called, set()).add(hooks[number].function.module.name)
    for number, modules in callers.items():
        if calls[number] == {True} and _is_made_elsewhere(hooks[number], modules):
            calls[number] = {False, True}
    new_below = {name for result in results for name in result.new_below}
    kept_below = sorted({kept for result in results for kept in result.kept_below})
    keeping: dict[int, frozenset[Protocol]] = {}
    for number, hook in enumerate(hooks):
        if new_below and hook.receiver is not None and number not in calls and not index.is_module(hook.receiver):
            below = {c.qualified for cls in index.subclasses(hook.receiver) for c in index.mro(cls)}
            if new_below & below:
                calls[number] = {True}
                keeping[number] = _keeping(index, hook.receiver, kept_below)
    kept = []
    for number, (hook, result) in enumerate(zip(hooks, results, strict=True)):
        if number in calls and (hook.by_name or hook.takes_more or calls[number] == {True}):
            others = {cell for other, seen in enumerate(results) if other != number for cell in seen.judged}
            of_new = calls[number] == {True}
            left = tuple(
                on_kept
                for f in result.facts
                if (on_kept := _on_kept(f, keeping.get(number)) if of_new and _is_of(f.cell.path, "self") else f)
                and (f.statement.filename, f.statement.start.row, f.cell.name) not in others
            )
            result = replace(result, facts=left, notes=())
        kept.append(result)
    return kept


def _keeping(index: Index, receiver: ClassInfo, kept_below: Sequence[tuple[str, str, Protocol]]) -> frozenset[Protocol]:
    """The protocols under which some hook calls that of an object of the class in both runs, having made it in the first alone."""
    classes = index.subclasses(receiver) if kept_below else []
    return frozenset(
        protocol
        for bound, module, protocol in kept_below
        if any(may_be_made(index, cls, bound, module) for cls in classes)
    )


def _on_kept(fact: Rebinding, keeping: frozenset[Protocol] | None) -> Rebinding | None:
    """What is left of a fact about an object that most callers make anew: where one keeps it, and what it binds is surely new."""
    protocols = fact.protocols & (keeping or frozenset())
    return replace(fact, protocols=protocols) if protocols and fact.value is not Value.UNKNOWN else None


def _is_made_elsewhere(hook: Hook, modules: set[str]) -> bool:
    """Whether the file of the class makes such objects too, and calls their hook nowhere: then it is for the loader to call."""
    cls = hook.receiver
    if cls is None or cls.module.name in modules:
        return False
    return re.search(rf"(?<!class )\b{re.escape(cls.name)}\(", cls.module.text) is not None


def _is_of(path: str, root: str) -> bool:
    return path == root or path.startswith((f"{root}.", f"{root}["))
