"""The check: what is known without running anything, then the step eagerly and replayed, then beside a fresh load."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from rebindlint.runtime.addresses import capture_findings, reload_findings
from rebindlint.runtime.census import Limits
from rebindlint.runtime.devices import device_of
from rebindlint.runtime.findings import Comparison, Finding, make_finding
from rebindlint.runtime.fresh import Beyond, Fresh, Sides, judge_fresh
from rebindlint.runtime.moments import Moments
from rebindlint.runtime.replay_oracle import judge_replay
from rebindlint.runtime.report import Report
from rebindlint.runtime.selftest import Runs, SelfTest
from rebindlint.runtime.steps import BoundStep
from rebindlint.runtime.unverified import not_verifiable, notes_of
from rebindlint.runtime.values import untouched, value_findings
from rebindlint.runtime.watch import Watch

__all__ = ["Check", "judge", "known"]


@dataclass(frozen=True, slots=True)
class Check:
    """What the host wants compared. ``partial`` is given what is known before the reloaded model is run: native code
    may end the process there.
    """

    fresh: Fresh | None = None
    poison: bool = True
    beyond: Beyond = field(default_factory=dict)
    partial: Callable[[Report], None] | None = None


def judge(
    model: torch.nn.Module,
    bound: BoundStep,
    moments: Moments,
    tested: SelfTest,
    watch: Watch | None,
    check: Check,
    limits: Limits,
) -> Report:
    capture = moments.captured.capture
    trusted = _trusted(moments, tested)
    findings, addresses = _without_running(moments, tested)
    comparisons: list[Comparison] = []
    notes = notes_of(moments, watch)
    if check.partial is not None:
        check.partial(_unfinished(model, moments, [*findings, *addresses], notes))
    runs = Runs(bound.on(model), capture)
    if trusted:
        verdict = judge_replay(moments, runs, tested.tolerance, addresses, poison=check.poison)
        findings += verdict.findings
        comparisons += verdict.comparisons
        notes += verdict.notes
    if check.fresh is not None:
        live = Sides(model, bound.on(model), bound.on_any, runs.reset, check.beyond)
        compared = judge_fresh(moments, live, check.fresh, tested.tolerance, limits)
        findings += compared.findings
        comparisons += compared.comparisons
        notes += compared.notes
    return _report(model, moments, findings, comparisons, notes)


def known(model: torch.nn.Module, moments: Moments, tested: SelfTest, watch: Watch | None) -> Report:
    """What can be said before the reloaded model is run: it may end the process."""
    findings, addresses = _without_running(moments, tested)
    return _unfinished(model, moments, [*findings, *addresses], notes_of(moments, watch))


def _trusted(moments: Moments, tested: SelfTest) -> bool:
    return tested.passed and not moments.captured.capture.obstacles


def _without_running(moments: Moments, tested: SelfTest) -> tuple[list[Finding], list[Finding]]:
    """Findings, and apart from them those about what the captured step holds, which runs may bear out."""
    trusted = _trusted(moments, tested)
    findings: list[Finding] = list(not_verifiable(moments, tested))
    findings += reload_findings(moments, capture_trusted=trusted)
    findings += value_findings(moments)
    if trusted:
        findings += untouched(moments)
    return findings, list(capture_findings(moments)) if trusted else []


def _report(
    model: torch.nn.Module,
    moments: Moments,
    findings: Sequence[Finding],
    comparisons: Sequence[Comparison],
    notes: Sequence[str],
) -> Report:
    capture = moments.captured.capture
    return Report(
        tuple(sorted(findings, key=lambda finding: finding.sort_key)),
        tuple(comparisons),
        tuple(notes),
        capture.kind,
        capture.operators,
        len(capture.externals),
        device_of(model),
    )


def _unfinished(model: torch.nn.Module, moments: Moments, findings: Sequence[Finding], notes: Sequence[str]) -> Report:
    text = "the process ended while the step was run on the reloaded model: addresses are judged, results are not"
    ended = make_finding("RT100", text, moments.captured.step_site, moments.protocol)
    return _report(model, moments, [*findings, ended], (), notes)
