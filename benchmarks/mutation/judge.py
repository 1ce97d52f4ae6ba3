"""Whether the linter found a mutant: it reports the injected cell, through the injected statement."""

from __future__ import annotations

import re
from dataclasses import dataclass

from benchmarks.mutation.mutants import Mutant
from benchmarks.mutation.overlay import hook_in, overlaid
from benchmarks.mutation.splice import marked_rows
from benchmarks.mutation.subjects import findings
from rebindlint.index import Index
from rebindlint.model import Diagnostic

__all__ = ["Verdict", "judged"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """``severity`` and ``code`` of the finding that kills the mutant; empty where none does. ``other`` is what was found else."""

    id: str
    kind: str
    variant: str
    place: str
    hook: str
    severity: str = ""
    code: str = ""
    other: tuple[str, ...] = ()

    @property
    def killed(self) -> bool:
        return bool(self.code)


def judged(base: Index, mutant: Mutant) -> Verdict:
    index = overlaid(base, mutant.texts)
    found = findings(index, hook_in(index, mutant.subject.hook))
    spans = {base.sources[module].shown: marked_rows(text) for module, text in mutant.texts.items()}
    hits = [
        d
        for d in found
        if d.code in mutant.codes and _is_about(d, mutant) and (mutant.known or _goes_through(d, spans))
    ]
    best = min(hits, key=lambda d: d.severity != "error", default=None)
    return Verdict(
        mutant.id,
        mutant.kind,
        mutant.variant,
        mutant.place,
        mutant.subject.name,
        str(best.severity) if best is not None else "",
        best.code if best is not None else "",
        tuple(f"{d.severity} {d.code} {d.attribute} {d.place}" for d in found if d is not best),
    )


def _is_about(diagnostic: Diagnostic, mutant: Mutant) -> bool:
    return not mutant.cells or not mutant.cells.isdisjoint(re.findall(r"\w+", diagnostic.attribute))


def _goes_through(diagnostic: Diagnostic, spans: dict[str, list[tuple[int, int]]]) -> bool:
    place = diagnostic.place
    rows = [(place.filename, place.start.row, place.end.row)]
    rows += [(frame.filename, frame.row, frame.row) for frame in diagnostic.trace]
    return any(first <= last_row and row <= last for name, row, last_row in rows for first, last in spans.get(name, ()))
