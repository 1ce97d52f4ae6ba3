"""The outcome of one verification, as values, as JSON and as text. Needs no torch."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from rebindlint.model import RebindlintError, Severity
from rebindlint.report.style import counted
from rebindlint.runtime.findings import Comparison, Finding

__all__ = ["Report", "Unfinished"]

_SAFE: Final = "the reload is safe for the captured step"


@dataclass(frozen=True, slots=True)
class Report:
    """``ok`` when no finding is an error. ``comparisons`` are all that were made, also those that came out equal.

    ``notes`` say in words what was not done (a container left out of the census, no fresh load to compare with).
    """

    findings: tuple[Finding, ...]
    comparisons: tuple[Comparison, ...] = ()
    notes: tuple[str, ...] = ()
    kind: str = ""  # of the capture, in words
    operators: int = 0
    storages: int = 0  # held by the captured step
    device: str = ""
    only: str = ""  # what the findings were restricted to, in words

    @property
    def ok(self) -> bool:
        return not any(finding.severity is Severity.ERROR for finding in self.findings)

    @property
    def exit_code(self) -> int:
        """0 when nothing but notes was found, else 1."""
        return int(any(finding.severity is not Severity.NOTE for finding in self.findings))

    def with_code(self, code: str) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.code == code)

    def to_json(self) -> list[dict[str, Any]]:
        """One object a finding, as in the static half's JSON report."""
        return [finding.to_json() for finding in self.findings]

    def text(self, *, verbose: bool = False) -> str:
        """For people. Notes are one line each unless ``verbose``."""
        return "\n".join(self._lines(verbose))

    def _lines(self, verbose: bool) -> Iterator[str]:
        for finding in self.findings:
            if finding.severity is Severity.NOTE and not verbose:
                yield f"{finding.code} {finding.name}: {finding.message}"
                continue
            yield from _finding_lines(finding)
            yield ""
        if self.kind:
            operators, storages = counted(self.operators, "operator"), counted(self.storages, "storage")
            yield f"captured: {operators} ({self.kind}) holding {storages} on {self.device}"
        for comparison in self.comparisons:
            yield f"compared: {comparison}"
        for note in self.notes:
            yield f"note: {note}"
        yield self._summary()

    def _summary(self) -> str:
        counts = {s: sum(f.severity is s for f in self.findings) for s in Severity}
        parts = [f"{count} {s.value}{'s' if count != 1 else ''}" for s, count in counts.items() if count]
        found = f"Found {', '.join(parts)}" if parts else "Nothing found"
        if self.only:
            return f"{found} about {self.only}."
        if not parts:
            return f"{found}: {_SAFE}."
        return f"{found}, and nothing worse: {_SAFE}." if self.kind and self.exit_code == 0 else f"{found}."


class Unfinished(RebindlintError):
    """A verification did not get to its end; ``report`` is what was known until then."""

    def __init__(self, reason: str, report: Report) -> None:
        super().__init__(reason)
        self.report = report


def _chain_labels() -> Iterator[str]:
    return itertools.chain(("rebound at",), itertools.repeat("called from"))


def _finding_lines(finding: Finding) -> Iterator[str]:
    yield f"{finding.code} {finding.severity.value}: {finding.message}"
    place = finding.place
    yield f"  --> {place.filename}:{place.row}:{place.column}"
    if place.text:
        yield f"   |  {place.text}"
    facts: list[tuple[str, object]] = [
        ("module", finding.module),
        ("also", ", ".join(path for path in finding.also if path not in finding.message)),
        (f"{finding.reader.access} by" if finding.reader else "", finding.reader),
        *zip(_chain_labels(), (f"{site} in {site.function}" for site in finding.rebound), strict=False),
        ("old storage", finding.old),
        ("new storage", finding.new),
        ("compared", finding.compared),
        *(("evidence", line) for line in finding.evidence),
        ("reload", finding.protocol.value),
        ("see", f"rebindlint explain {finding.code}"),
        ("static rules", ", ".join(finding.static_rules)),
    ]  # fmt: skip
    for label, value in facts:
        if value:
            yield f"   = {label}: {value}"
