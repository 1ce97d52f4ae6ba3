"""What a verification could not do: RT100, and notes in words. Silence must not mean that nobody looked."""

from __future__ import annotations

from collections.abc import Iterator

from rebindlint.report.style import counted
from rebindlint.runtime.findings import Finding, make_finding
from rebindlint.runtime.moments import Moments
from rebindlint.runtime.selftest import SelfTest
from rebindlint.runtime.sites import resolve
from rebindlint.runtime.values import unmatched_updates
from rebindlint.runtime.watch import Watch

__all__ = ["not_verifiable", "notes_of"]


def not_verifiable(moments: Moments, tested: SelfTest) -> Iterator[Finding]:
    """RT100 for a reload that raised and for a capture that failed its self-test or that no graph could hold."""
    captured, reload = moments.captured, moments.reload
    if reload.error:
        text = f"the reload did not finish ({reload.error}): the model may be half reloaded"
        yield make_finding("RT100", text, captured.step_site, reload.protocol)
    obstacle = next(iter(captured.capture.obstacles), None)
    if obstacle is None and tested.passed:
        return
    reason = obstacle.reason if obstacle is not None else tested.reason
    site = resolve(obstacle.site) if obstacle is not None and obstacle.site is not None else captured.step_site
    moved = [move.before.path for move in reload.difference.moved]
    evidence: tuple[str, ...] = ()
    if moved:
        some = ", ".join(moved[:5]) + (", ..." if len(moved) > 5 else "")
        evidence = (f"the reload rebound {len(moved)} tensors; whether the step reads them is unknown: {some}",)
    text = f"the captured step cannot be judged: {reason}"
    yield make_finding("RT100", text, site, reload.protocol, evidence=evidence)


def notes_of(moments: Moments, watch: Watch | None) -> list[str]:
    notes = [f"`{path}` has {length} items and was left out" for path, length in moments.reload.after.cut]
    notes += [f"no tensor matches the update pattern {pattern!r}" for pattern in unmatched_updates(moments)]
    if moments.captured.capture.native:
        operators = ", ".join(sorted({native.operator for native in moments.captured.capture.native}))
        notes.append(f"native objects passed to {operators} are judged by the replay alone")
    replaced = [number for number in moments.followed if not moments.reload.after.names(number)]
    if replaced:
        notes.append(
            f"the reload replaced {counted(len(replaced), 'native handle')} of the step; the replay passes what the model "
            "has now, because no graph holds such handles"
        )
    if moments.captured.loose:
        count = len(moments.captured.loose)
        made = f"{counted(count, 'tensor')} that the step makes past the dispatcher"
        notes.append(f"{made} {'is taken for a constant' if count == 1 else 'are taken for constants'}")
    if watch is not None and watch.refused:
        notes.append(f"nothing was watched: {watch.refused}")
    if watch is not None and watch.without_lines:
        notes.append("which lines bind what is no longer noted, because this process has watched hundreds of reloads")
    if watch is not None and watch.lost:
        notes.append(f"{watch.lost} events of the reload could not be noted")
    return notes
