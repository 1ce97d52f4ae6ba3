"""From findings to edits, and from edits to new text."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rebindlint import registry
from rebindlint.imports import without_unused
from rebindlint.model import Diagnostic, Edit, Fix, Place, Severity
from rebindlint.proposal import Proposal, Task
from rebindlint.report.style import counted
from rebindlint.texts import edited

if TYPE_CHECKING:
    from rebindlint.config import Config
    from rebindlint.index import Index

__all__ = ["Applied", "apply_fixes", "propose"]

Read = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Applied:
    """``texts``: new text of each changed file; ``skipped`` overlap with one that was applied, ``refused`` would have broken their file."""

    texts: Mapping[str, str]
    fixed: tuple[Diagnostic, ...] = ()
    skipped: tuple[Diagnostic, ...] = ()
    refused: tuple[Diagnostic, ...] = ()


def propose(diagnostics: Sequence[Diagnostic], index: Index, config: Config, read: Read) -> list[Diagnostic]:
    """The same diagnostics, with a fix where there is a right one. Findings that share a statement are fixed together or not at all.

    A fixer that raises leaves its findings without a fix; one note a fixer says so.
    """
    together: dict[Place, list[Diagnostic]] = {}
    for diagnostic in diagnostics:
        together.setdefault(diagnostic.place, []).append(diagnostic)
    fixes: dict[Place, Fix] = {}
    failed: dict[tuple[str, str], list[Diagnostic]] = {}
    for place, shared in together.items():
        try:
            fix = _fix(shared, index)
        except Exception as error:  # one fixer on one statement must not end the run
            failed.setdefault((shared[0].code, f"{type(error).__name__}: {error}"), []).append(shared[0])
            continue
        if fix is not None:
            fixes[place] = fix
    return [
        *(replace(d, fix=fixes[d.place]) if d.place in fixes else d for d in diagnostics),
        *(_failure(why, some) for (_, why), some in failed.items()),
    ]


def _failure(why: str, diagnostics: Sequence[Diagnostic]) -> Diagnostic:
    first, *others = diagnostics
    more = f" and on {counted(len(others), 'other')}" if others else ""
    message = f"the fixer of {first.code} failed on this statement{more}: {' '.join(why.split())}"
    return Diagnostic(first.code, first.name, message, Severity.NOTE, first.place, hook=first.hook)


def _fix(diagnostics: Sequence[Diagnostic], index: Index) -> Fix | None:
    """One fix for all findings of one statement."""
    fixers = registry.fixers()
    work = [Task(d.fact, fixers[d.code]) for d in diagnostics if d.fact is not None and d.code in fixers]
    if len(work) < len(diagnostics):
        return None
    module = index.module(work[0].fact.module)
    return Proposal(module, index).fix(work) if module is not None else None


# ---- applying


@dataclass(slots=True)
class _File:
    edits: set[Edit] = field(default_factory=set)
    fixed: list[Diagnostic] = field(default_factory=list)


def apply_fixes(diagnostics: Sequence[Diagnostic], read: Read) -> Applied:
    """Each fix whole or not at all; of two that overlap the first in the source wins, the other is left for the next round."""
    files: dict[str, _File] = {}
    skipped: list[Diagnostic] = []
    refused: list[Diagnostic] = []
    for diagnostic in sorted(diagnostics, key=lambda d: d.sort_key):
        assert diagnostic.fix is not None
        if any(_conflicts(edit, files.get(edit.place.filename, _File()).edits) for edit in diagnostic.fix.edits):
            skipped.append(diagnostic)
            continue
        trial = {e.place.filename: {*files.get(e.place.filename, _File()).edits} for e in diagnostic.fix.edits}
        for edit in diagnostic.fix.edits:
            trial[edit.place.filename].add(edit)
        if not all(_is_sound(read(shown), edited(read(shown), sorted(edits))) for shown, edits in trial.items()):
            refused.append(diagnostic)
            continue
        for shown, edits in trial.items():
            file = files.setdefault(shown, _File())
            file.edits = edits
        files[diagnostic.place.filename].fixed.append(diagnostic)
    texts = {
        shown: without_unused(read(shown), edited(read(shown), sorted(f.edits)), shown) for shown, f in files.items()
    }
    fixed = tuple(d for file in files.values() for d in file.fixed)
    return Applied({s: t for s, t in texts.items() if t != read(s)}, fixed, tuple(skipped), tuple(refused))


def _conflicts(edit: Edit, others: set[Edit]) -> bool:
    """Two edits touch the same text; the same edit twice is one."""
    for other in others:
        if edit == other:
            continue
        if edit.place.start < other.place.end and other.place.start < edit.place.end:
            return True
        if edit.place.start == other.place.start:
            return True
    return False


_GLOBALS = frozenset(dir(__builtins__)) if not isinstance(__builtins__, dict) else frozenset(__builtins__)


def _is_sound(before: str, after: str) -> bool:
    """The new text parses, and uses no name at all that the old one did not use or that nothing binds."""
    try:
        tree = ast.parse(after)
    except (SyntaxError, ValueError, RecursionError):
        return False
    old = set(re.findall(r"\w+", before))
    bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= {
        a.asname or a.name.split(".")[0]
        for n in ast.walk(tree)
        if isinstance(n, ast.Import | ast.ImportFrom)
        for a in n.names
    }
    bound |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return all(name in bound or name in _GLOBALS for name in used - old)
