from __future__ import annotations

import functools
import gc
import sys
from typing import Any

import pytest
import torch
from torch import nn

from rebindlint.model import Protocol, RebindlintError
from rebindlint.runtime.compare import Tolerance
from rebindlint.runtime.guard import Guard, assert_reload_safe

from .reload_models import Kernel, KernelLayer, Layer, RebindingLayer, StaleLayer, inputs, load, weight
from .test_watch import fingerprint

X = inputs()


def test_a_safe_reload_is_five_lines() -> None:
    layer = load(Layer)
    report = assert_reload_safe(layer, lambda m: m(X), lambda: layer.load(2), lambda: load(Layer, 2))
    assert report.ok
    assert report.kind == "recorded operators"
    assert (report.operators, report.storages, report.device) == (3, 3, "cpu")


def test_an_unsafe_reload_is_an_assertion_with_the_report() -> None:
    layer = load(RebindingLayer)
    with pytest.raises(AssertionError, match=r"RT101 error: `model\.derived` was bound to other storage") as caught:
        assert_reload_safe(layer, lambda m: m(X), lambda: layer.load(2))
    assert "rebinds attribute" in str(caught.value)


def reload_and_raise(guard: Guard, layer: Layer, error: BaseException) -> None:
    with guard.reloading():
        layer.derived = weight(2)
        raise error


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_what_the_reload_raises_passes_through_and_is_reported(kind: type[BaseException]) -> None:
    layer, before = load(RebindingLayer), fingerprint()
    guard = Guard(layer)
    guard.capture(lambda m: m(X))
    error = kind("the checkpoint is broken\nsecond line")
    with pytest.raises(kind) as caught:
        reload_and_raise(guard, layer, error)
    assert caught.value is error
    assert caught.value.__cause__ is None
    assert fingerprint() == before
    report = guard.verify()
    assert guard.reload_error == f"{kind.__name__}: the checkpoint is broken"
    (unfinished,) = report.with_code("RT100")
    assert "did not finish" in unfinished.message
    assert report.with_code("RT101")  # what happened until then is judged all the same


def test_an_exception_without_a_text_is_reported_by_its_class() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("this has no text")

    layer = load(RebindingLayer)
    guard = Guard(layer)
    guard.capture(lambda m: m(X))
    with pytest.raises(Mute):
        reload_and_raise(guard, layer, Mute())
    assert guard.reload_error == "Mute"
    assert guard.verify().with_code("RT101")


def test_what_the_step_raises_while_warming_up_passes_through() -> None:
    def step() -> None:
        raise LookupError("no such batch")

    with pytest.raises(LookupError, match="no such batch"):
        Guard(load(Layer)).capture(step)


def test_a_model_without_forward_passes_torchs_own_error() -> None:
    with pytest.raises(NotImplementedError, match="forward"):
        Guard(nn.Module()).capture(lambda m: m(X))


def test_a_step_that_fails_after_the_reload_is_not_verifiable() -> None:
    layer = load(Layer)
    guard = Guard(layer)
    guard.capture(lambda m: m(X))
    with guard.reloading():
        layer.weight.data = torch.empty(0)
    codes = [finding.code for finding in guard.verify().findings]
    assert codes == ["RT100", "RT101"]


@pytest.mark.parametrize(
    ("fresh", "reason"),
    [
        (lambda: [][1], "the fresh load failed: IndexError: list index out of range"),
        (lambda: torch.zeros(1), "gave a Tensor, neither a module nor"),
        (lambda: sys.exit(3), "the fresh load failed: SystemExit: 3"),
        (lambda: (load(Layer, 2), lambda: 1 / 0), "the step failed beside a fresh load: ZeroDivisionError"),
    ],
    ids=["raises", "no module", "exits", "step raises"],
)
def test_a_fresh_load_that_fails_is_one_line(fresh: Any, reason: str) -> None:
    layer = load(Layer)
    guard = Guard(layer)
    guard.capture(lambda m: m(X))
    with guard.reloading():
        layer.load(2)
    (finding,) = guard.verify(fresh).findings
    assert finding.code == "RT100"
    assert reason in finding.message
    assert "\n" not in finding.message


def test_a_step_that_does_not_take_the_model_needs_a_step_for_the_fresh_one() -> None:
    layer = load(StaleLayer)

    def verified(fresh: Any) -> Any:
        guard = Guard(layer)
        guard.capture(lambda: layer(X))
        with guard.reloading():
            layer.load(2)
        return guard.verify(fresh)

    alone = verified(lambda: load(StaleLayer, 2))
    assert [f.tensor for f in alone.findings] == ["model.derived"]
    assert any("results were not compared" in note for note in alone.notes)

    def with_step() -> Any:
        fresh = load(StaleLayer, 2)
        return fresh, lambda: fresh(X)

    assert [f.tensor for f in verified(with_step).findings] == ["", "model.derived"]


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (lambda: Guard(torch.zeros(1)), "needs a torch.nn.Module, not a Tensor"),  # type: ignore[arg-type]
        (lambda: Guard(nn.Module(), device="tpu"), "unknown device 'tpu'"),
        (lambda: Guard(load(Layer)).verify(), "nothing was captured"),
        (lambda: Guard(load(Layer)).reloading().__enter__(), "capture a step before reloading"),
        (lambda: captured().verify(), "nothing was reloaded"),
        (lambda: captured().reloading(protocol="magic").__enter__(), "unknown reload protocol 'magic'"),
        (
            lambda: Guard(load(Layer)).capture(two_arguments),  # type: ignore[arg-type]
            "takes nothing or the model, not 2 arguments",
        ),
        (lambda: Guard(load(Layer)).capture(lambda m: m(X), warm_up=0), "warm_up must be 1 or more"),
    ],
)
def test_misuse_is_one_line(misuse: Any, message: str) -> None:
    with pytest.raises(RebindlintError, match=message) as caught:
        misuse()
    assert "\n" not in str(caught.value)


def two_arguments(first: Any, second: Any) -> Any:
    return first, second


def captured() -> Guard:
    guard = Guard(load(Layer))
    guard.capture(lambda m: m(X))
    return guard


@pytest.mark.skipif(torch.cuda.is_available(), reason="speaks of machines without a CUDA device")
def test_asking_for_cuda_without_a_device_is_one_line() -> None:
    with pytest.raises(RebindlintError, match="no CUDA device is available"):
        Guard(load(Layer), device="cuda")


def test_several_reloads_are_judged_one_by_one() -> None:
    layer = load(Layer)
    guard = Guard(layer)
    guard.capture(lambda m: m(X))
    reports = []
    for seed, derived in ((3, None), (4, weight(5)), (6, None)):
        with guard.reloading():
            layer.load(seed)
            if derived is not None:
                layer.derived = derived
        reports.append(guard.verify())
    assert [[finding.code for finding in report.findings] for report in reports] == [
        [],
        ["RT101", "RT102"],
        ["RT101", "RT102"],
    ]
    assert "by the reload" in reports[1].findings[0].message
    assert "between capture and reload" in reports[2].findings[0].message  # dead since the second


def test_five_runs_in_one_process_say_the_same() -> None:
    def once(kind: type[Layer]) -> list[str]:
        layer = load(kind)
        guard = Guard(layer)
        guard.capture(lambda m: m(X))
        with guard.reloading():
            layer.load(2)
        report = guard.verify(lambda: load(kind, 2))
        return [
            f"{finding.code} {finding.tensor} {finding.old.state if finding.old else ''}" for finding in report.findings
        ]

    kinds = [Layer, RebindingLayer, KernelLayer, StaleLayer]
    first = {kind: once(kind) for kind in kinds}
    assert first[Layer] == []
    for _ in range(5):
        assert {kind: once(kind) for kind in reversed(kinds)} == first


def test_nothing_is_left_behind() -> None:
    layer = load(Layer)
    before, random = fingerprint(), torch.get_rng_state()
    hooks = [dict(module._forward_hooks) for module in layer.modules()]
    attributes = {name: id(value) for name, value in vars(layer).items()}
    values = [layer.weight.clone(), layer.derived.clone()]
    guard = Guard(layer)
    guard.capture(lambda m: m(X) + 0)
    with guard.reloading():
        pass
    assert guard.verify(lambda: load(Layer, 1)).findings == ()
    assert fingerprint() == before
    assert torch.equal(torch.get_rng_state(), random)
    assert [dict(module._forward_hooks) for module in layer.modules()] == hooks
    assert {name: id(value) for name, value in vars(layer).items()} == attributes
    assert all(torch.equal(a, b) for a, b in zip(values, (layer.weight, layer.derived), strict=True))


def test_poisoned_memory_is_put_back_and_the_live_model_untouched() -> None:
    layer = load(RebindingLayer)
    guard = Guard(layer)
    guard.capture(lambda m: m(X))
    with guard.reloading():
        layer.load(2)
    expected = layer(X)
    assert guard._captured is not None
    contents = [e.tensor.clone() for e in guard._captured.capture.externals.values()]
    guard.verify()
    assert torch.equal(layer(X), expected)
    assert all(
        torch.equal(e.tensor, old) for e, old in zip(guard._captured.capture.externals.values(), contents, strict=True)
    )


def test_poison_can_be_left_out() -> None:
    layer = load(RebindingLayer)
    guard = Guard(layer)
    guard.capture(lambda m: m(X))
    with guard.reloading():
        layer.load(2)
    report = guard.verify(poison=False)
    assert [finding.evidence for finding in report.with_code("RT101")] == [()]
    assert not any("NaN" in comparison.subject for comparison in report.comparisons)


def test_closing_lets_go_of_the_captured_memory() -> None:
    import weakref

    layer = load(RebindingLayer)
    old = weakref.ref(layer.derived.untyped_storage())
    guard = Guard(layer)
    guard.capture(lambda m: m(X))
    with guard.reloading():
        layer.load(2)
    gc.collect()
    assert old() is not None
    guard.close()
    gc.collect()
    assert old() is None


def test_further_roots_give_names_to_what_the_model_does_not_hold() -> None:
    runner = Kernel(weight(1))
    guard = Guard(nn.Identity(), roots={"runner": runner})
    guard.capture(lambda: X @ runner.packed)
    with guard.reloading(protocol=Protocol.LAYERWISE):
        runner.packed = weight(2)
    (finding,) = guard.verify().with_code("RT101")
    assert (finding.tensor, finding.module) == ("runner.packed", "")
    assert finding.protocol is Protocol.LAYERWISE


@pytest.mark.parametrize("form", ["bound", "partial", "callable"])
def test_a_step_may_be_any_callable(form: str) -> None:
    layer = load(Layer)

    class Runs:
        def __call__(self) -> torch.Tensor:
            return layer(X)  # type: ignore[no-any-return]

        def go(self) -> torch.Tensor:
            return self()

    step: Any = {"bound": Runs().go, "partial": functools.partial(layer, X), "callable": Runs()}[form]
    guard = Guard(layer)
    assert guard.capture(step).passed
    with guard.reloading():
        layer.load(2)
    assert guard.verify().findings == ()


HELD = {"x": inputs()}


def test_inputs_that_a_step_reads_from_its_module_have_names() -> None:
    layer = load(Layer)
    guard = Guard(layer)
    guard.capture(lambda m: m(X) + m(HELD["x"]))
    with guard.reloading():
        HELD["x"] = weight(7)[:2]
    report = guard.verify()
    (finding,) = report.with_code("RT101")
    assert finding.tensor == "step.<global HELD>['x']"
    assert finding.static_rules == ("RB105",)


def test_a_reload_while_another_is_watched_is_said() -> None:
    layer, other = load(Layer), load(RebindingLayer)
    guards = [Guard(layer), Guard(other)]
    for guard in guards:
        guard.capture(lambda m: m(X))
    with guards[0].reloading(), guards[1].reloading():
        layer.load(2)
        other.load(2)
    assert guards[0].verify().findings == ()
    inner = guards[1].verify()
    assert any("nothing was watched" in note for note in inner.notes)
    (finding,) = inner.with_code("RT101")
    assert finding.rebound == ()  # found by address, without a line


def test_a_tolerance_is_used_and_named() -> None:
    layer = load(RebindingLayer)
    guard = Guard(layer, tolerance=Tolerance(atol=1e6))
    assert guard.capture(lambda m: m(X)).tolerance == Tolerance(atol=1e6)
    with guard.reloading():
        layer.load(2)
    report = guard.verify()
    assert [finding.code for finding in report.findings] == ["RT101"]
    assert report.comparisons[0].tolerance == "rtol=0, atol=1e+06"


def test_steps_under_autocast_and_inference_mode_are_judged_too() -> None:
    layer = load(RebindingLayer)

    def step(model: nn.Module) -> Any:
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
            return model(X)

    guard = Guard(layer)
    assert guard.capture(step).passed
    with guard.reloading():
        layer.load(2)
    assert [finding.code for finding in guard.verify().findings] == ["RT101", "RT102"]
