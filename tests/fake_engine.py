"""Stand-ins for the stages between the index and the fixers, so that the stages around them are tested alone.

Every HAZARD is a finding of RB101; SAFE or UNSAFE on its line tell of a fix, which removes the word (USELESS: which does not
help). Fixes on one line overlap, so it takes two rounds to get rid of `x_HAZARDHAZARD_SAFE`. NOTE gives an RB003. `via NAME` puts the file NAME into the call chain.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace

import pytest

from rebindlint.config import Config
from rebindlint.discover import Source, read_source
from rebindlint.model import (
    Applicability,
    Diagnostic,
    Edit,
    Fix,
    Frame,
    Place,
    Position,
    Protocol,
    RebindlintError,
    Severity,
)
from rebindlint.texts import edited, split_lines

__all__ = ["FakeEngine"]


@dataclass
class FakeEngine:
    """``runs`` counts how often a project was analysed."""

    runs: int = 0
    jobs: list[int] = field(default_factory=list)
    failures: dict[str, tuple[int, int, str]] = field(default_factory=dict)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
        import rebindlint.check
        import rebindlint.execution
        import rebindlint.index

        rules = (
            SimpleNamespace(code="RB101", name="attribute-rebind"),
            SimpleNamespace(code="RB102", name="data-rebind"),
            SimpleNamespace(code="RB203", name="lost-source"),
        )
        registry = ModuleType("rebindlint.registry")
        registry.__dict__.update(
            rules=lambda: rules,
            fixers=lambda: {"RB101": object()},
            page=lambda code: f"## What it does\n\nFinds {code}. Always.\n",
        )
        fix = ModuleType("rebindlint.fix")
        fix.__dict__.update(propose=lambda diagnostics, index, config, read: diagnostics, apply_fixes=_apply)
        for module in (registry, fix):
            monkeypatch.setitem(sys.modules, module.__name__, module)
            monkeypatch.setattr(rebindlint, module.__name__.split(".")[1], module, raising=False)
        monkeypatch.setattr(rebindlint.index, "build_index", self._index)
        monkeypatch.setattr(rebindlint.execution, "execute_hooks", self._execute)
        monkeypatch.setattr(rebindlint.check, "diagnose", _diagnose)
        return self

    def _index(self, sources: Sequence[Source], config: Config) -> SimpleNamespace:
        return SimpleNamespace(sources=sources, failures=self.failures)

    def _execute(
        self, index: SimpleNamespace, config: Config, *, jobs: int, progress: Callable[[int, int], None] | None
    ) -> SimpleNamespace:
        self.runs += 1
        self.jobs.append(jobs)
        if progress is not None:
            progress(1, 1)
        notes = tuple(
            Diagnostic("RB003", "budget-exhausted", "gave up", Severity.NOTE, _place(source.shown, row, 1, 2))
            for source in index.sources
            for row, line in _lines(source)
            if "NOTE" in line
        )
        return SimpleNamespace(facts=index.sources, notes=notes, hooks=2, executions=5, sampled=0, unresolved=())


def _diagnose(facts: Sequence[Source], rules: object, index: object, config: Config) -> list[Diagnostic]:
    return [
        _diagnostic(source.shown, row, line, match.start())
        for source in facts
        for row, line in _lines(source)
        for match in re.finditer("HAZARD", line)
    ]


def _lines(source: Source) -> list[tuple[int, str]]:
    try:
        return list(enumerate(split_lines(read_source(source)), 1))
    except RebindlintError:
        return []


def _diagnostic(shown: str, row: int, line: str, start: int) -> Diagnostic:
    place = _place(shown, row, start + 1, start + 7)
    applicability = Applicability.UNSAFE if "UNSAFE" in line else Applicability.SAFE if "SAFE" in line else None
    fix = (
        Fix(applicability, "Remove it", (Edit(place, "y_HAZARD" if "USELESS" in line else ""),))
        if applicability
        else None
    )
    trace = tuple(Frame(name, 1, "f") for name in re.findall(r"via (\S+)", line))
    return Diagnostic(
        "RB101", "attribute-rebind", "`x` gets a new tensor", Severity.ERROR, place, "x", "A.hook", (Protocol.DIRECT,), trace, fix
    )  # fmt: skip


def _place(shown: str, row: int, start: int, end: int) -> Place:
    return Place(shown, Position(row, start), Position(row, end))


def _apply(diagnostics: Sequence[Diagnostic], read: Callable[[str], str]) -> SimpleNamespace:
    rows: dict[tuple[str, int], Diagnostic] = {}
    for diagnostic in diagnostics:
        rows.setdefault((diagnostic.place.filename, diagnostic.place.start.row), diagnostic)
    edits: dict[str, list[Edit]] = {}
    for diagnostic in rows.values():
        assert diagnostic.fix is not None
        edits.setdefault(diagnostic.place.filename, []).extend(diagnostic.fix.edits)
    texts = {shown: edited(read(shown), some) for shown, some in edits.items()}
    return SimpleNamespace(texts=texts, fixed=tuple(rows.values()), refused=())
