"""The guard: capture a step, watch a reload, verify. Start reading here.

```python
guard = Guard(model)
guard.capture(lambda model: model(x))
with guard.reloading():
    reload(model)
report = guard.verify(fresh=load_again)
```
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import torch

from rebindlint.model import Protocol, RebindlintError
from rebindlint.runtime.capture import Capture, NotReplayable, Uncaptured, first_line, record
from rebindlint.runtime.census import Limits
from rebindlint.runtime.compare import Tolerance
from rebindlint.runtime.cuda_graph import capture_graph
from rebindlint.runtime.devices import wants_graph
from rebindlint.runtime.difference import difference
from rebindlint.runtime.fresh import Beyond, Fresh
from rebindlint.runtime.handles import followed, handle_value
from rebindlint.runtime.judgement import Check, judge, known
from rebindlint.runtime.moments import Captured, Moments, Reload
from rebindlint.runtime.poison import unowned
from rebindlint.runtime.report import Report
from rebindlint.runtime.selftest import RandomState, Runs, SelfTest, note_undeclared_writes, self_test
from rebindlint.runtime.sites import definition_site
from rebindlint.runtime.snapshot import VALUE_LIMIT, Snapshot, take_snapshot
from rebindlint.runtime.steps import BoundStep, Step
from rebindlint.runtime.watch import Watch

__all__ = ["Guard", "assert_reload_safe"]


class Guard:
    """Watches one model over capture, reload and check.

    ``roots`` are further objects whose tensors belong to the engine (a model runner: caches, input buffers); the
    model and the step are roots already. ``device`` is ``auto`` (a real CUDA graph for a model on a CUDA device, else
    recorded operators), ``cpu`` (always recorded operators) or ``cuda``. ``tolerance`` None means bit for bit where
    the step repeats itself so. ``look_inside`` names operator namespaces whose kernels are Python although
    ``torch.library`` does not know them. Values are compared for tensors up to ``value_limit`` bytes.

    ``stand_in`` is for an engine that captures no graphs on this device, where the recording stands in for a graph on
    another: a native handle that the reload replaces is no error and replays pass its successor, and a value that the
    step waits for is no obstacle as long as the self-test passes.

    The captured storages stay alive until `close`: after a reload that rebinds, old and new weights exist side by
    side.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        *,
        roots: Mapping[str, object] | None = None,
        device: str = "auto",
        tolerance: Tolerance | None = None,
        look_inside: Collection[str] = (),
        stand_in: bool = False,
        limits: Limits | None = None,
        value_limit: int = VALUE_LIMIT,
    ) -> None:
        if not isinstance(model, torch.nn.Module):
            raise RebindlintError(f"a guard needs a torch.nn.Module, not a {type(model).__name__}")
        self.model = model
        self._roots = dict(roots or {})
        self._graph = wants_graph(model, device)
        self._tolerance = tolerance
        self._look_inside = tuple(look_inside)
        self._stand_in = stand_in
        self._limits = limits or Limits()
        self._value_limit = value_limit
        self._step: BoundStep | None = None
        self._captured: Captured | None = None
        self._tested: SelfTest | None = None
        self._reload: Reload | None = None
        self._watch: Watch | None = None
        self._verified = False

    @property
    def reloaded(self) -> bool:
        return self._reload is not None

    @property
    def verified(self) -> bool:
        """Has the last reload been verified?"""
        return self._verified

    @property
    def reload_error(self) -> str:
        """What the last reload raised, in one line; empty when it went through."""
        return self._reload.error if self._reload is not None else ""

    def paths(self) -> list[str]:
        """Of all tensors at the capture, by every name; none before it."""
        return list(self._captured.snapshot.cells) if self._captured is not None else []

    def capture(self, step: Step, *, warm_up: int = 1, written_at: Callable[..., Any] | None = None) -> SelfTest:
        """Run ``step`` (with the model as its argument if it takes one) to warm up, capture it, and test the replay.

        Findings about the step as a whole point at the definition of ``written_at``, or of the step.
        What the step raises while warming up passes through. A step that cannot be captured is no error here:
        `verify` reports RT100.
        """
        if warm_up < 1:
            raise RebindlintError("a step has to run at least once before it is captured: warm_up must be 1 or more")
        bound = self._step = BoundStep(step)
        self._captured = self._reload = None
        run = bound.on(self.model)
        random = RandomState()
        with torch.no_grad():
            for _ in range(warm_up):
                run()
        capture: Capture
        try:
            capture = (capture_graph if self._graph else record)(run, self._look_inside)
        except NotReplayable as error:
            capture = Uncaptured(str(error))
        if self._stand_in:
            capture.obstacles = [obstacle for obstacle in capture.obstacles if not obstacle.waits]
        note_undeclared_writes(run, capture, self._value_limit)
        self._captured = self._moment_of_capture(capture, bound, written_at or step)
        self._tested = self_test(Runs(run, capture), self._tolerance, self._captured.loose)
        random.restore()
        return self._tested

    def _moment_of_capture(self, capture: Capture, bound: BoundStep, written_at: Callable[..., Any]) -> Captured:
        snapshot, census = take_snapshot(self._all_roots(bound), self._limits)
        handles = {
            number: value
            for number, external in capture.externals.items()
            if (value := handle_value(external, snapshot.names(number))) is not None
        }
        capture.owners = [
            r.owner for r in census.records if r.number in handles and not isinstance(r.owner, torch.nn.Module)
        ]
        del census  # it holds the tensors
        unnamed = [e for n, e in capture.externals.items() if not snapshot.names(n)]
        loose = unowned(capture, unnamed, collect=False)
        return Captured(capture, snapshot, definition_site(written_at), frozenset(loose), handles)

    def _all_roots(self, bound: BoundStep) -> dict[str, object]:
        return {"model": self.model, **self._roots, **bound.roots()}

    def _snapshot(self, bound: BoundStep) -> tuple[Snapshot, list[type]]:
        snapshot, census = take_snapshot(
            self._all_roots(bound), self._limits, values=True, value_limit=self._value_limit
        )
        return snapshot, list(census.owners)

    @contextlib.contextmanager
    def reloading(
        self,
        *,
        protocol: Protocol | str = Protocol.DIRECT,
        blame: bool = True,
        junk: bool = True,
        updates: Sequence[str] = (),
        same_weights: bool = False,
    ) -> Iterator[None]:
        """Watch the reload in the ``with`` body. What it raises passes through unchanged, and nothing stays patched.

        ``blame`` finds out which lines rebind; ``junk`` fills memory that the reload allocates without a value with
        NaN; ``updates`` are patterns of tensor paths that the reload should change; ``same_weights`` says that it
        loads the weights that are loaded already, so that nothing may change.
        """
        bound = self._step
        if self._captured is None or bound is None:
            raise RebindlintError("capture a step before reloading: guard.capture(step)")
        kept_protocol = _protocol(protocol)
        before, classes = self._snapshot(bound)
        watch = Watch(classes, blame=blame, junk=junk)
        options: dict[str, Any] = {"updates": tuple(updates), "same_weights": same_weights}
        try:
            with watch:
                yield
        except BaseException as error:
            with contextlib.suppress(Exception):  # the host's exception matters more than our notes
                self._noted(kept_protocol, bound, before, watch, {**options, "error": first_line(error)})
            raise
        self._noted(kept_protocol, bound, before, watch, options)

    def _noted(
        self, protocol: Protocol, bound: BoundStep, before: Snapshot, watch: Watch, options: dict[str, Any]
    ) -> None:
        after, _ = self._snapshot(bound)
        self._verified = False
        changes = difference(before, after)
        self._watch = watch
        self._reload = Reload(protocol, before, after, changes, watch.events, watch.junk, **options)

    def verify(
        self,
        fresh: Fresh | None = None,
        *,
        poison: bool = True,
        beyond: Beyond | None = None,
        partial: Callable[[Report], None] | None = None,
    ) -> Report:
        """Judge the last reload: addresses, then replay against eager step and poison, then the live model against
        ``fresh``.

        ``fresh`` builds a new model from the same weights (or gives (model, step)). ``beyond`` names what the host
        computes outside the captured step (logits, say), as functions of a model and the step's result; the live model
        and the fresh one must agree there too. ``partial`` is given a report of what is known before the reloaded model
        is run, for hosts whose native code may end the process.

        Never raises for what step, reload or ``fresh`` raised: that is reported as RT100. Raises RebindlintError when
        nothing was captured or reloaded.
        """
        check = Check(fresh, poison, beyond or {}, partial)
        with self._moments() as (bound, moments, tested):
            self._verified = True
            random = RandomState()
            try:
                return judge(self.model, bound, moments, tested, self._watch, check, self._limits)
            finally:
                random.restore()

    def known(self) -> Report:
        """What can be said of the last reload without running the reloaded model, which may end the process. Raises
        RebindlintError as `verify` does.
        """
        with self._moments() as (_, moments, tested):
            return known(self.model, moments, tested, self._watch)

    @contextlib.contextmanager
    def _moments(self) -> Iterator[tuple[BoundStep, Moments, SelfTest]]:
        bound, captured, tested, reload = self._step, self._captured, self._tested, self._reload
        if captured is None or tested is None or bound is None:
            raise RebindlintError("nothing was captured: call guard.capture(step) first")
        if reload is None:
            raise RebindlintError("nothing was reloaded: do it inside `with guard.reloading():`")
        gone = [e for n, e in captured.capture.externals.items() if not reload.after.names(n)]
        moments = Moments(captured, reload, frozenset(unowned(captured.capture, gone, collect=True)))
        with contextlib.ExitStack() as stack:
            if self._stand_in and captured.handles:
                successors = stack.enter_context(followed(captured, self._all_roots(bound), self._limits))
                moments.followed = successors
            yield bound, moments, tested

    def close(self) -> None:
        """Let go of the captured storages."""
        self._step = self._captured = self._tested = self._reload = self._watch = None


def _protocol(protocol: Protocol | str) -> Protocol:
    try:
        return Protocol(protocol)
    except ValueError:
        known = ", ".join(p.value for p in Protocol)
        raise RebindlintError(f"unknown reload protocol {protocol!r}; use one of {known}") from None


def assert_reload_safe(
    model: torch.nn.Module,
    step: Step,
    reload: Callable[[], Any],
    fresh: Fresh | None = None,
    *,
    protocol: Protocol | str = Protocol.DIRECT,
    updates: Sequence[str] = (),
    same_weights: bool = False,
    **options: Any,
) -> Report:
    """Capture ``step``, run ``reload``, verify; raises AssertionError with the report when there is an error.

    ``options`` go to `Guard`. What step and reload raise passes through unchanged.
    """
    __tracebackhide__ = True  # from pytest: the report says where
    guard = Guard(model, **options)
    guard.capture(step)
    with guard.reloading(protocol=protocol, updates=updates, same_weights=same_weights):
        reload()
    report = guard.verify(fresh)
    guard.close()
    if not report.ok:
        raise AssertionError(f"the reload is not safe\n{report.text(verbose=True)}")
    return report
