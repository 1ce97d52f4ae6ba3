"""``rebindlint explain CODE PATH:LINE``: how one finding came about."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rebindlint.cache import Analysis, Cache, result_key
from rebindlint.catalogue import catalogue
from rebindlint.config import Config, did_you_mean
from rebindlint.model import Diagnostic, Protocol, RebindlintError
from rebindlint.pipeline import (
    Discovered,
    Examined,
    Progress,
    Request,
    examine,
    find_files,
    silent_about_linted_code,
)
from rebindlint.selection import select
from rebindlint.suppress import apply_suppressions

if TYPE_CHECKING:
    from rebindlint.execution.account import Account
    from rebindlint.index import Hook, Index

__all__ = ["Explained", "Explanation", "Location", "explain_finding"]

_NEAR = 20  # lines
_LISTED = 5


@dataclass(frozen=True, slots=True)
class Location:
    """``path:line`` as a report prints it; a column is allowed and not looked at."""

    path: str
    row: int

    @classmethod
    def parse(cls, text: str) -> Location:
        """Raises RebindlintError when there is no line in it, or when it cannot be a file's."""
        match = re.fullmatch(r"(?P<path>.+?):(?P<row>\d+)(?::\d+)?", text)
        if match is None or int(match["row"]) < 1:
            raise RebindlintError(f"`{text}` is no place: write path:line, as in model.py:12")
        if os.path.isdir(match["path"]):
            raise RebindlintError(f"{match['path']} is a folder, and a finding lies in a file")
        return cls(match["path"], int(match["row"]))


@dataclass(frozen=True, slots=True)
class Explanation:
    """A finding with the path that shows it under each protocol, the one that decides the severity first.

    ``own`` is the protocol that the severity is judged by, ``chosen`` whether the user asked for it. ``accounts`` is empty for a
    diagnostic that no execution of a hook came to. ``silenced`` says why a check does not report it, if it does not.
    """

    diagnostic: Diagnostic
    own: Protocol
    chosen: bool = False
    accounts: tuple[Account, ...] = ()
    silenced: str = ""


@dataclass(frozen=True, slots=True)
class Explained:
    explanations: tuple[Explanation, ...]
    examined: Examined


def explain_finding(code: str, location: Location, request: Request, progress: Progress | None = None) -> Explained:
    """Every finding of ``code`` (or of the rule with that name) at the place; ``request`` names the file.

    Raises RebindlintError, naming the findings nearby, when there is none.
    """
    code = _code(code)
    part = _examine_in_part(code, location, request, progress)
    examined, index = part or (examine(request, progress), None)
    if examined.failures:
        raise RebindlintError(examined.failures[0])
    if not examined.targets:
        raise RebindlintError(f"{location.path} is excluded by the configuration")
    everything = {id(d): d for d in (*examined.analysis.diagnostics, *examined.analysis.unresolved)}
    for diagnostic in examined.reported:  # with the fixes that the configuration allows; and parse errors, suppressions
        known = next((k for k, d in everything.items() if _is_same(d, diagnostic)), id(diagnostic))
        everything[known] = diagnostic
    inside = [d for d in everything.values() if d.place.filename in examined.targets]
    found = sorted((d for d in inside if d.code == code and _covers(d, location.row)), key=lambda d: d.sort_key)
    if not found:
        unresolved = {id(d) for d in examined.analysis.unresolved if d.code != code}
        raise RebindlintError(_nothing(code, location, [d for d in inside if id(d) not in unresolved]))
    return Explained(tuple(_explanations(found, examined, request, index)), examined)


def _code(wanted: str) -> str:
    codes = {key: entry.code for entry in catalogue() for key in (entry.code, entry.name)}
    for key in (wanted.upper(), wanted.lower()):
        if key in codes:
            return codes[key]
    if re.fullmatch(r"RT\d+", wanted.upper()):
        raise RebindlintError(f"{wanted.upper()} is found on a live model, not at a place in the source")
    raise RebindlintError(f"unknown rule `{wanted}`{did_you_mean(wanted.upper(), codes)}")


def _is_same(left: Diagnostic, right: Diagnostic) -> bool:
    return (left.code, left.place, left.attribute, left.hook) == (
        right.code,
        right.place,
        right.attribute,
        right.hook,
    )


def _covers(diagnostic: Diagnostic, row: int) -> bool:
    place = diagnostic.place
    last = place.end.row if place.end.column > 1 else max(place.start.row, place.end.row - 1)
    return place.start.row <= row <= last


def _nothing(code: str, location: Location, inside: list[Diagnostic]) -> str:
    """One line: what there is instead, the nearest first."""
    distances = sorted((abs(d.place.start.row - location.row), d.code != code, d.sort_key) for d in inside)
    near = [key for distance, other, key in distances if distance <= _NEAR or not other]
    place = f"no {code} at {location.path}:{location.row}"
    if not near:
        return f"{place}; nothing is found in the file" if not inside else f"{place}, nor anything near it"
    listed = [f"{found} at line {row}" + (f" (`{name}`)" if name else "") for _, row, _, found, name in near]
    listed = list(dict.fromkeys(listed))
    more = f" and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
    return f"{place}; near it: {', '.join(listed[:_LISTED])}{more}"


def _examine_in_part(
    code: str, location: Location, request: Request, progress: Progress | None
) -> tuple[Examined, Index] | None:
    """The file by the hooks that may come to the place; None where that shows no finding, or all hooks have been executed before."""
    discovered = find_files(request)
    if code.startswith("RB0") or discovered.failures or len(discovered.targets) != 1:
        return None  # what is no hazard may depend on everything
    if request.cache and Cache.for_config(request.config).load(result_key(discovered.sources, request.config)):
        return None
    with silent_about_linted_code():
        diagnostics, index = _diagnostics_near(location, discovered, request.config, progress)
    if not any(d.code == code and _covers(d, location.row) for d in diagnostics):
        return None
    kept = apply_suppressions(select(diagnostics, request.config), discovered.read)
    analysis = Analysis(tuple(diagnostics))
    return Examined(analysis, tuple(kept), discovered.sources, discovered.targets, (), discovered.read), index


def _diagnostics_near(
    location: Location, discovered: Discovered, config: Config, progress: Progress | None
) -> tuple[list[Diagnostic], Index]:
    """Late imports: of the engine and LibCST, which a result from the cache does not need."""
    from rebindlint import fix, registry
    from rebindlint.check import diagnose
    from rebindlint.concerned import facts_in, functions_at
    from rebindlint.index import build_index

    index = build_index(discovered.sources, config)
    functions = [info for shown in discovered.targets for info in functions_at(index, shown, location.row)]
    facts = facts_in(index, config, functions, jobs=config.jobs, progress=progress) if functions else []
    diagnostics = diagnose(facts, registry.rules(), index, config)
    return fix.propose(diagnostics, index, config, discovered.read), index


# ---- accounts


def _explanations(
    found: list[Diagnostic], examined: Examined, request: Request, index: Index | None
) -> list[Explanation]:
    """Late imports: of the engine, which a plain page does not need."""
    from rebindlint.index import build_index

    config = request.config
    chosen = Protocol(config.reload) if config.reload not in (None, "", "all") else None
    with silent_about_linted_code():
        index = index or build_index(examined.sources, config)
        return [_explanation(d, chosen, index, examined, request) for d in found]


def _explanation(
    diagnostic: Diagnostic, chosen: Protocol | None, index: Index, examined: Examined, request: Request
) -> Explanation:
    source = index.by_shown.get(diagnostic.place.filename)
    own = chosen or index.protocol_of(source.module if source is not None else "")
    accounts = _accounts(diagnostic, index, request, own)
    return Explanation(diagnostic, own, chosen is not None, accounts, _silenced(diagnostic, examined, request))


def _silenced(diagnostic: Diagnostic, examined: Examined, request: Request) -> str:
    if any(_is_same(diagnostic, other) for other in examined.reported):
        return ""
    if not select([replace(diagnostic, fact=None)], request.config):
        return "the configuration leaves the rule out here"
    if any(_is_same(diagnostic, other) for other in examined.analysis.unresolved):
        return "it is shown with --show-unresolved only"
    return "a comment suppresses it"


def _accounts(diagnostic: Diagnostic, index: Index, request: Request, own: Protocol) -> tuple[Account, ...]:
    from rebindlint.execution.account import accounts_of
    from rebindlint.execution.run import PROTOCOLS

    if not diagnostic.hook or not diagnostic.attribute:
        return ()
    protocols = tuple(sorted(PROTOCOLS, key=lambda p: p is not own))
    for hook in _hooks(diagnostic, index, request):
        accounts = accounts_of(index, hook, protocols, diagnostic.place, diagnostic.attribute)
        if accounts:
            return accounts
    return ()


def _hooks(diagnostic: Diagnostic, index: Index, request: Request) -> list[Hook]:
    """The hooks that the finding may be of: those of its name, in the file where its chain begins."""
    from rebindlint.index import find_hooks, find_lazy, lazy_hooks

    named = [hook for hook in find_hooks(index, request.config.hooks) if hook.name == diagnostic.hook]
    module = diagnostic.fact.module if diagnostic.fact is not None and diagnostic.fact.lazy else ""
    for place in find_lazy(index) if module else ():
        if place[0] == module:
            named += [hook for hook in lazy_hooks(index, place) if hook.name == diagnostic.hook]
    if not diagnostic.trace:
        return named
    first = diagnostic.trace[0].filename
    return sorted(named, key=lambda hook: hook.function.module.shown != first)
