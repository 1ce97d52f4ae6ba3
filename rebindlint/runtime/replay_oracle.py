"""Oracle B, replay: after the reload, does the captured step still give what the eager step gives? And, by poison:
what does it read?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch

from rebindlint.model import Protocol
from rebindlint.runtime.capture import NotReplayable, first_line
from rebindlint.runtime.compare import Outcome, Tolerance, compare
from rebindlint.runtime.findings import Comparison, Finding, make_finding
from rebindlint.runtime.moments import Captured, Moments
from rebindlint.runtime.poison import poisoned
from rebindlint.runtime.selftest import Runs

__all__ = ["ReplayVerdict", "judge_replay"]


@dataclass(slots=True)
class ReplayVerdict:
    """``findings`` are the given ones with what the poison proved, and RT102 or RT100."""

    findings: list[Finding]
    comparisons: list[Comparison] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def judge_replay(
    moments: Moments, runs: Runs, tolerance: Tolerance, addresses: Sequence[Finding], *, poison: bool
) -> ReplayVerdict:
    """Run the step eagerly and replayed on the same inputs. Never raises for what the step raises: that is RT100."""
    verdict = ReplayVerdict(list(addresses))
    try:
        eager = runs.eager()
    except Exception as error:  # the host's step on the host's reloaded model
        verdict.findings.append(_unjudged(moments, f"the eager step failed after the reload: {first_line(error)}"))
        return verdict
    if runs.capture.moved():
        verdict.notes.append(
            "not replayed: memory that the step holds was moved or released, replaying would touch foreign memory"
        )
        return verdict
    try:
        replayed = runs.replayed()
    except NotReplayable as error:
        verdict.findings.append(_unjudged(moments, f"after the reload {error}"))
        return verdict
    outcome = _compared(runs, eager, replayed, tolerance)
    comparison = _comparison("replayed step against eager step after the reload", tolerance, outcome)
    verdict.comparisons.append(comparison)
    if not outcome.equal:
        stale = _stale(moments.captured, moments.protocol, comparison, outcome, addresses)
        verdict.findings.append(replace(stale, evidence=_restless(runs, eager, tolerance)))
    if poison and moments.unowned:
        _poison(moments, runs, tolerance, eager, verdict)
    runs.reset()
    return verdict


def _compared(runs: Runs, expected: list[torch.Tensor], actual: list[torch.Tensor], tolerance: Tolerance) -> Outcome:
    """Result and written storages must agree; how far they are apart is said of the result alone where that differs,
    because a cache that the step writes a little of would dilute it.
    """
    outcome = compare(expected, actual, tolerance)
    results = len(runs.capture.outputs)
    if not results:
        return outcome
    inner = compare(expected[:results], actual[:results], tolerance)
    if inner.equal:
        return replace(outcome, nan_fraction=inner.nan_fraction)
    return replace(outcome, nan_fraction=inner.nan_fraction, max_difference=inner.max_difference)


def _comparison(subject: str, tolerance: Tolerance, outcome: Outcome) -> Comparison:
    return Comparison(subject, str(tolerance), outcome.equal, outcome.max_difference, outcome.nan_fraction)


def _unjudged(moments: Moments, reason: str) -> Finding:
    return make_finding(
        "RT100", f"{reason}; replay and eager step could not be compared", moments.captured.step_site, moments.protocol
    )


def _restless(runs: Runs, eager: list[torch.Tensor], tolerance: Tolerance) -> tuple[str, ...]:
    """Before the reload the step repeated itself, or the self-test would have failed."""
    try:
        again = _compared(runs, eager, runs.eager(), tolerance)
    except Exception:  # the host's step, which ran a moment ago
        return ()
    text = "the eager step does not repeat itself since the reload, as it did before: it reads memory that changes"
    return () if again.equal else (text,)


def _stale(
    captured: Captured, protocol: Protocol, comparison: Comparison, outcome: Outcome, addresses: Sequence[Finding]
) -> Finding:
    suspects = [
        finding.tensor for finding in addresses if finding.code in ("RT101", "RT103", "RT108") and finding.tensor
    ]
    named = f"; suspects: {', '.join(f'`{path}`' for path in suspects)}" if suspects else ""
    return make_finding(
        "RT102",
        f"the captured step gives another result than the eager step after the reload ({outcome.gap}){named}",
        next((f.place for f in addresses if f.code in ("RT101", "RT103", "RT108")), captured.step_site),
        protocol,
        also=tuple(suspects),
        compared=comparison,
    )


def _poison(
    moments: Moments, runs: Runs, tolerance: Tolerance, eager: list[torch.Tensor], verdict: ReplayVerdict
) -> None:
    """Fill what only the capture keeps; the replay must turn to NaN where it reads it, the eager step must not
    notice.
    """
    capture = moments.captured.capture
    dead = [capture.externals[number] for number in sorted(moments.unowned) if number not in moments.captured.handles]
    with poisoned(dead) as filled:
        if not filled:
            return
        try:
            again, replayed = runs.eager(), runs.replayed()
        except Exception as error:  # the host's step, which ran a moment ago
            verdict.notes.append(f"the poison proved nothing: {first_line(error)}")
            return
    untouched = _compared(runs, eager, again, tolerance)
    poisoned_replay = _compared(runs, eager, replayed, tolerance)
    verdict.comparisons += [
        _comparison("eager step while the dead memory is NaN", tolerance, untouched),
        _comparison("replayed step while the dead memory is NaN", tolerance, poisoned_replay),
    ]
    if not untouched.equal:
        verdict.notes.append(
            "the poison proved nothing: the eager step changed with it, so the memory was in use after all"
        )
        return
    proof = f"filled with NaN: the eager step does not change, {poisoned_replay.nan_fraction:.0%} of the replay's result is NaN"
    places = {(e.address, e.nbytes) for e in filled}
    for index, finding in enumerate(verdict.findings):
        if finding.code == "RT101" and finding.old is not None and (finding.old.address, finding.old.nbytes) in places:
            verdict.findings[index] = replace(finding, evidence=(*finding.evidence, proof))
