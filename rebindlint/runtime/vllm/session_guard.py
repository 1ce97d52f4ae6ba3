"""A guard whose reload may be spread over several calls of the host, and whose step may be missing.

An engine reloads in one call (``reload_weights``), in several (start, update, finish), or over a sleep. Between those
calls the engine may do anything, so the watch is open only inside them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from rebindlint.model import Protocol, RebindlintError, Severity
from rebindlint.runtime.addresses import capture_findings, reload_findings
from rebindlint.runtime.capture import Uncaptured
from rebindlint.runtime.compare import Tolerance
from rebindlint.runtime.devices import device_of
from rebindlint.runtime.findings import Finding
from rebindlint.runtime.fresh import Fresh, FreshVerdict, judge_fresh_values
from rebindlint.runtime.guard import Guard
from rebindlint.runtime.handles import followed
from rebindlint.runtime.moments import Captured, Moments
from rebindlint.runtime.poison import unowned
from rebindlint.runtime.report import Report
from rebindlint.runtime.selftest import SelfTest
from rebindlint.runtime.sites import definition_site
from rebindlint.runtime.snapshot import Snapshot, take_snapshot
from rebindlint.runtime.steps import BoundStep
from rebindlint.runtime.unverified import not_verifiable, notes_of
from rebindlint.runtime.values import value_findings
from rebindlint.runtime.watch import Watch

__all__ = ["SessionGuard"]


class SessionGuard(Guard):
    """`begin`, any number of `watching` blocks, `end`, then `verify` or `verify_addresses`."""

    _before: Snapshot | None = None
    _session_watch: Watch | None = None

    @property
    def captured(self) -> bool:
        """Was a step captured that can be judged?"""
        return self._tested is not None and self._tested.passed

    @property
    def capture_note(self) -> str:
        """Why the captured step cannot be judged; empty when it can."""
        return self._tested.reason if self._tested is not None else "nothing was captured"

    def capture_nothing(self, reason: str) -> None:
        """Stand in for a capture that could not be had: reloads are compared by address, and RT100 gives ``reason``."""
        self._step = bound = BoundStep(_no_step)
        capture = Uncaptured(reason)
        snapshot, _ = take_snapshot(self._all_roots(bound), self._limits)
        self._captured = Captured(capture, snapshot, definition_site(type(self.model).forward))
        self._tested = SelfTest(False, reason, self._tolerance or Tolerance())
        self._reload = None

    def begin(self) -> None:
        """The moment before a reload."""
        if self._step is None:
            raise RebindlintError("capture a step, or nothing, before a reload begins")
        self._before, classes = self._snapshot(self._step)
        self._session_watch = Watch(classes)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """One of the calls that the reload consists of. What it raises passes through."""
        if self._session_watch is None:
            raise RebindlintError("no reload has begun")
        with self._session_watch:
            yield

    def end(self, protocol: Protocol, *, error: str = "") -> None:
        """The moment after the reload. ``error`` is what it raised, in one line."""
        step, before, watch = self._step, self._before, self._session_watch
        if step is None or before is None or watch is None:
            raise RebindlintError("no reload has begun")
        self._before = self._session_watch = None
        self._noted(protocol, step, before, watch, {"updates": (), "same_weights": False, "error": error})

    def verify_addresses(self, *, mild: bool = False, fresh: Fresh | None = None) -> Report:
        """Judge the last reload without running the step: storages, layouts, values and their owners, and the values
        beside those of a ``fresh`` load.

        ``mild`` makes RT100 a warning: nothing is wrong yet, there was only nothing to judge.
        """
        captured, tested, reload = self._captured, self._tested, self._reload
        if captured is None or tested is None or reload is None:
            raise RebindlintError("no reload has ended")
        capture = captured.capture
        gone = [e for n, e in capture.externals.items() if not reload.after.names(n)]
        with self._followed(captured) as successors:
            moments = Moments(captured, reload, frozenset(unowned(capture, gone, collect=True)), successors)
        findings: list[Finding] = [
            replace(f, severity=Severity.WARNING) if mild else f for f in not_verifiable(moments, tested)
        ]
        findings += capture_findings(moments)
        findings += reload_findings(moments, capture_trusted=tested.passed)
        findings += value_findings(moments)
        beside = FreshVerdict()
        if fresh is not None:
            beside = judge_fresh_values(moments, self.model, fresh, tested.tolerance, self._limits)
            findings += beside.findings
        return Report(
            tuple(sorted(findings, key=lambda finding: finding.sort_key)),
            tuple(beside.comparisons),
            (*notes_of(moments, self._watch), "the step was not run: judged by addresses", *beside.notes),
            capture.kind,
            capture.operators,
            len(capture.externals),
            device_of(self.model),
        )

    def _followed(self, captured: Captured) -> contextlib.AbstractContextManager[frozenset[int]]:
        """The native handles for which the model has others now."""
        if self._step is None or not self._stand_in or not captured.handles:
            return contextlib.nullcontext(frozenset())
        return followed(captured, self._all_roots(self._step), self._limits)


def _no_step() -> None:
    """What is captured where there is no step."""
