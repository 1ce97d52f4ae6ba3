"""Oracle C, fresh load: is the reloaded model what loading the same weights into a new model gives?"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from rebindlint.model import RebindlintError
from rebindlint.report.style import counted
from rebindlint.runtime.capture import first_line
from rebindlint.runtime.census import Limits
from rebindlint.runtime.compare import Outcome, Tolerance, compare, copies, tensors_in
from rebindlint.runtime.findings import Comparison, Finding, make_finding
from rebindlint.runtime.fresh_values import compared_values
from rebindlint.runtime.handles import is_native_handle
from rebindlint.runtime.moments import Moments
from rebindlint.runtime.selftest import RandomState
from rebindlint.runtime.sites import Site, definition_site

__all__ = ["Beyond", "Fresh", "FreshVerdict", "NoFreshLoad", "Sides", "judge_fresh", "judge_fresh_values"]

# builds a new model from the weights that were loaded; with a step of its own when the step does not take the model
Fresh = Callable[[], "torch.nn.Module | tuple[torch.nn.Module, Callable[[], Any]]"]
# by name: what the host computes outside the captured step, from a model and the step's result
Beyond = Mapping[str, Callable[[torch.nn.Module, Any], Any]]


class NoFreshLoad(RebindlintError):
    """A builder raises it where it cannot give a model and that is no fault: its message becomes a note."""


@dataclass(slots=True)
class FreshVerdict:
    findings: list[Finding] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Sides:
    """The live model and how its step runs; ``step_on`` runs the step on another model, None when the step cannot.

    ``beyond`` is computed from the step's result by both models and compared as well: no graph holds it, but a reload
    has to get it right.
    """

    model: torch.nn.Module
    step: Callable[[], Any]
    step_on: Callable[[torch.nn.Module], Any] | None
    reset: Callable[[], None]  # puts back what the step writes
    beyond: Beyond = field(default_factory=dict)


def judge_fresh(moments: Moments, live: Sides, build: Fresh, tolerance: Tolerance, limits: Limits) -> FreshVerdict:
    """Never raises for what the host's builder or step raises: that is RT100."""
    verdict = FreshVerdict()
    fresh, step = _built(moments, build, verdict)
    if fresh is None:
        return verdict
    _compare_values(moments, live.model, fresh, tolerance, limits, verdict)
    step_on = live.step_on
    if step is None and step_on is not None:
        step = lambda: step_on(fresh)  # noqa: E731
    if step is None:
        verdict.notes.append(
            "results were not compared with a fresh load: let the step take the model, or let fresh give (model, step)"
        )
        return verdict
    try:
        _compare_results(moments, live, fresh, step, tolerance, verdict)
    except Exception as error:  # the host's step on either model
        verdict.findings.append(_unjudged(moments, f"the step failed beside a fresh load: {first_line(error)}"))
    finally:
        live.reset()
    return verdict


def judge_fresh_values(
    moments: Moments, model: torch.nn.Module, build: Fresh, tolerance: Tolerance, limits: Limits
) -> FreshVerdict:
    """The same where the step cannot be run: only what the tensors hold is compared."""
    verdict = FreshVerdict()
    fresh, _ = _built(moments, build, verdict)
    if fresh is not None:
        _compare_values(moments, model, fresh, tolerance, limits, verdict)
    return verdict


def _built(
    moments: Moments, build: Fresh, verdict: FreshVerdict
) -> tuple[torch.nn.Module | None, Callable[[], Any] | None]:
    """The fresh model and its own step; without a model ``verdict`` says why there is none."""
    try:
        built = build()
    except NoFreshLoad as reason:
        verdict.notes.append(str(reason))
        return None, None
    except (Exception, SystemExit) as error:  # out of memory, a missing file: the other oracles have their results
        verdict.findings.append(_unjudged(moments, f"the fresh load failed: {first_line(error)}"))
        return None, None
    fresh, step = built if isinstance(built, tuple) else (built, None)
    if not isinstance(fresh, torch.nn.Module):
        text = f"the fresh load gave a {type(fresh).__name__}, neither a module nor (module, step)"
        verdict.findings.append(_unjudged(moments, text))
        return None, None
    return fresh, step


def _unjudged(moments: Moments, reason: str) -> Finding:
    text = f"{reason}; the model could not be compared with a fresh load"
    return make_finding("RT100", text, moments.captured.step_site, moments.protocol)


def _compare_values(
    moments: Moments,
    model: torch.nn.Module,
    fresh: torch.nn.Module,
    tolerance: Tolerance,
    limits: Limits,
    verdict: FreshVerdict,
) -> None:
    findings, comparison = compared_values(moments, model, fresh, tolerance, limits)
    verdict.findings += findings
    verdict.comparisons.append(comparison)


def _compare_results(
    moments: Moments,
    live: Sides,
    fresh: torch.nn.Module,
    step: Callable[[], Any],
    tolerance: Tolerance,
    verdict: FreshVerdict,
) -> None:
    random = RandomState()
    ours = _run(live, live.model, live.step, random)
    theirs = _run(live, fresh, step, random)
    random.restore()
    for subject, actual in ours.results.items():
        outcome = compare(theirs.results[subject], actual, tolerance)
        comparison = Comparison(
            f"{subject} against a fresh load",
            str(tolerance),
            outcome.equal,
            outcome.max_difference,
            outcome.nan_fraction,
        )
        verdict.comparisons.append(comparison)
        if not outcome.equal:
            first = _first_difference(ours, theirs, tolerance)
            evidence = tuple(_kept_handles(moments)) or tuple(_outside_tensors(moments, verdict.findings))
            finding = _other_result(moments, live.model, subject, comparison, outcome, first)
            verdict.findings.append(dataclasses.replace(finding, evidence=evidence))
            return  # what is computed from a wrong result is wrong too


@dataclass(frozen=True, slots=True)
class _Run:
    results: Mapping[str, list[torch.Tensor]]
    modules: Mapping[str, list[torch.Tensor]]  # outputs of sub-modules, in the order in which they finish


_STEP_RESULT: Final = "result of the step"


def _run(live: Sides, model: torch.nn.Module, step: Callable[[], Any], random: RandomState) -> _Run:
    live.reset()
    random.restore()
    with _module_outputs(model) as outputs, torch.no_grad():
        result = step()
        results = {_STEP_RESULT: copies(tensors_in(result))}
        for name, compute in live.beyond.items():
            results[name] = copies(tensors_in(compute(model, result)))
    return _Run(results, outputs)


def _first_difference(ours: _Run, theirs: _Run, tolerance: Tolerance) -> str:
    for name, tensors in ours.modules.items():
        if name in theirs.modules and not compare(theirs.modules[name], tensors, tolerance).equal:
            return name
    return ""


def _other_result(
    moments: Moments, model: torch.nn.Module, subject: str, comparison: Comparison, outcome: Outcome, first: str
) -> Finding:
    modules = dict(model.named_modules())
    differs = modules.get(first, model)
    module_class = type(differs).__qualname__
    where = f"; the first module whose output differs is `{first}` ({module_class})" if first else ""
    if subject == _STEP_RESULT:
        text = f"the step gives another result than on a fresh load of the same weights ({outcome.gap}){where}"
    else:
        text = (
            f"the {subject} differ from those of a fresh load of the same weights ({outcome.gap}), although the "
            f"captured step itself gives the same result: what is wrong lies outside it{where}"
        )
    return make_finding(
        "RT104",
        text,
        _forward_site(differs, moments.captured.step_site) if first in modules else moments.captured.step_site,
        moments.protocol,
        module=module_class,
        compared=comparison,
        also=(first,) if first else (),
    )


def _forward_site(module: torch.nn.Module, otherwise: Site) -> Site:
    """Where its result is computed; of torch's own modules that says nothing."""
    return otherwise if type(module).__module__.startswith("torch.") else definition_site(type(module).forward)


def _kept_handles(moments: Moments) -> Iterator[str]:
    """Native handles that a reload which replaced others of their kind left as they were: their weights may be old."""
    kept, replaced = _handles(moments)
    if kept and replaced:
        names = ", ".join(f"`{path}`" for path in kept[:5]) + (", ..." if len(kept) > 5 else "")
        were = "as it was" if len(kept) == 1 else "as they were"
        yield f"the reload replaced {counted(replaced, 'native handle')} and left {len(kept)} {were}: {names}"


def _outside_tensors(moments: Moments, findings: Sequence[Finding]) -> Iterator[str]:
    """Where to look when no tensor differs."""
    if any(finding.code == "RT104" and finding.tensor for finding in findings):
        return
    _, replaced = _handles(moments)
    what = f", such as behind the {counted(replaced, 'native handle')} that the reload replaced" if replaced else ""
    yield f"all tensors that were compared are equal to the fresh load's: what differs lies outside them{what}"


def _handles(moments: Moments) -> tuple[list[str], int]:
    """Paths of native handles that the reload left as they were, and how many it replaced."""
    before, after = moments.reload.before, moments.reload.after
    kept: list[str] = []
    replaced = 0
    for path, cell in before.cells.items():
        if not is_native_handle(cell):
            continue
        now = after.cells.get(path)
        if now is not None and now.number == cell.number and now.digest == cell.digest:
            kept.append(path)
        else:
            replaced += 1
    return kept, replaced


@contextlib.contextmanager
def _module_outputs(model: torch.nn.Module) -> Iterator[dict[str, list[torch.Tensor]]]:
    """Copies of every sub-module's first output, in the order in which the modules finish."""
    outputs: dict[str, list[torch.Tensor]] = {}
    handles = []

    def keep(name: str) -> Callable[..., None]:
        def hook(_module: torch.nn.Module, _args: Any, result: Any) -> None:
            if name not in outputs:
                outputs[name] = copies(tensors_in(result))

        return hook

    try:
        for name, module in model.named_modules():
            if name:
                handles.append(module.register_forward_hook(keep(name)))
        yield outputs
    finally:
        for handle in handles:
            handle.remove()
