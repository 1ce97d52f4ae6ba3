"""The report of a run on sources: the findings, and in so many words what was not looked at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rebindlint.model import RebindlintError
from rebindlint.runtime.findings import Finding
from rebindlint.runtime.report import Report
from rebindlint.runtime.sites import shown
from rebindlint.runtime.sources.facts import ScenarioFacts
from rebindlint.runtime.sources.judge import judge
from rebindlint.runtime.sources.launch import TIME_LIMIT, Outcome, chosen_methods, run_tree

__all__ = ["ADDRESSES_ONLY", "SourcesReport", "report_of", "verify_sources"]

ADDRESSES_ONLY: Final = (
    "addresses only: the tree ran on a CPU with stand-ins for its platform and its compiled operators, "
    "so nothing is said about values"
)


@dataclass(frozen=True, slots=True)
class SourcesReport:
    """``judged`` pairs each scenario with its findings, in the order in which the methods were asked for."""

    outcome: Outcome
    judged: tuple[tuple[ScenarioFacts, tuple[Finding, ...]], ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for _, findings in self.judged for finding in findings)

    @property
    def ran(self) -> bool:
        """Was at least one layer reloaded?"""
        return any(not facts.error and not facts.absent for facts, _ in self.judged)

    @property
    def exit_code(self) -> int:
        """0 when nothing but notes was found, 1 for findings, 2 when not one layer could be reloaded."""
        return Report(self.findings).exit_code if self.ran else 2

    def to_json(self) -> list[dict[str, Any]]:
        """One object a finding, with ``method``, ``variant`` and ``oracle`` beside the keys of every runtime finding."""
        return [
            {**finding.to_json(), "method": facts.method, "variant": facts.variant or None, "oracle": "addresses"}
            for facts, findings in self.judged
            for finding in findings
        ]

    def text(self, *, verbose: bool = False) -> str:
        return "\n".join(self._lines(verbose))

    def _lines(self, verbose: bool) -> Iterator[str]:
        body = Report(self.findings).text(verbose=verbose).splitlines()
        yield from body[:-1]  # its last line speaks of a captured step
        outcome = self.outcome
        yield f"vllm {outcome.version} in {shown(str(outcome.tree))}, torch {outcome.torch}, {outcome.seconds:.0f} s"
        width = max((len(facts.title) for facts, _ in self.judged), default=0)
        for facts, findings in self.judged:
            yield f"  {facts.title:<{width}} {_summary(facts, findings)}"
        for facts, _ in self.judged:
            yield from (f"note: {facts.title}: {note}" for note in _notes(facts))
        yield f"note: {ADDRESSES_ONLY}"
        yield body[-1] if self.findings else "Nothing found: every storage that the steps read is still in its place."


def _summary(facts: ScenarioFacts, findings: Sequence[Finding]) -> str:
    if facts.absent:
        return f"not in this release: {facts.absent}"
    if facts.error:
        return "not judged"
    counts = {code: sum(f.code == code for f in findings) for code in sorted({f.code for f in findings})}
    found = ", ".join(f"{count} {code}" for code, count in counts.items()) or "clean"
    extent = f"{facts.tensors} tensors on {facts.storages} storages, {facts.reads} read by the step"
    return f"{found} ({extent}; {', '.join(facts.classes)})"


def _notes(facts: ScenarioFacts) -> Iterator[str]:
    yield from facts.notes
    if facts.step_error and not facts.error:
        yield f"its step stopped early, so that reads may be missing: {facts.step_error}"


def report_of(outcome: Outcome) -> SourcesReport:
    """A variant that the release lacks is no finding; a method of which it has nothing is one, RT100."""
    present = {facts.method for facts in outcome.facts if not facts.absent}
    judged: list[tuple[ScenarioFacts, tuple[Finding, ...]]] = []
    for facts in outcome.facts:
        findings = tuple(judge(facts, outcome.tree))
        if facts.method not in present:
            present.add(facts.method)  # once a method
            error = f"vllm {outcome.version} does not have it ({facts.absent})"
            findings = tuple(judge(ScenarioFacts(facts.method, "", error=error), outcome.tree))
        judged.append((facts, findings))
    return SourcesReport(outcome, tuple(judged))


def verify_sources(
    tree: Path,
    methods: Sequence[str],
    *,
    python: str | Path = "",
    time_limit: float = TIME_LIMIT,
    progress: Any = lambda text: None,
) -> SourcesReport:
    """Reload one layer of each method of the tree and judge where its tensors lie. Raises RebindlintError."""
    outcome = run_tree(tree, chosen_methods(methods), python=python, time_limit=time_limit, progress=progress)
    report = report_of(outcome)
    if not report.ran and not report.findings:
        raise RebindlintError(f"nothing of {tree} could be run")
    return report
