from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from rebindlint.runtime.capture import record
from rebindlint.runtime.compare import Tolerance, compare, same_values, tensors_in
from rebindlint.runtime.selftest import Runs, SelfTest, self_test

from .reload_models import Layer, inputs, load, weight


def judged(step: Callable[[], Any], tolerance: Tolerance | None = None) -> SelfTest:
    step()
    return self_test(Runs(step, record(step)), tolerance)


def test_a_visible_step_passes_bit_for_bit() -> None:
    layer, x = load(Layer), inputs()
    result = judged(lambda: layer(x))
    assert (result.passed, result.reason, result.tolerance, result.changed) == (True, "", Tolerance(), 3)


def test_everything_is_put_back() -> None:
    layer, x = load(Layer), inputs()
    dropout = nn.Dropout(0.5)
    counter = torch.zeros(1)

    def step() -> torch.Tensor:
        counter.add_(1)
        return dropout(layer(x)) + counter  # type: ignore[no-any-return]

    step()
    runs = Runs(step, record(step))
    before = [t.clone() for t in (layer.weight, layer.derived, x, counter)]
    versions = [layer.weight._version, x._version]
    state = torch.get_rng_state()
    assert self_test(runs).passed
    assert all(torch.equal(a, b) for a, b in zip(before, (layer.weight, layer.derived, x, counter), strict=True))
    assert torch.equal(torch.get_rng_state(), state)
    assert versions == [layer.weight._version, x._version]


def hidden_from_the_dispatcher() -> torch.Tensor:
    x = HIDDEN[0] @ HIDDEN[1]
    return torch.from_numpy(x.numpy() * 2)


HIDDEN = (inputs(), weight(1))
CALLS: list[int] = []


def different_each_time() -> torch.Tensor:
    CALLS.append(1)
    return HIDDEN[0] * len(CALLS)


def insensitive() -> torch.Tensor:
    return torch.ones(2) + HIDDEN[0].shape[0]


def no_tensor() -> int:
    return 3


def read_back() -> torch.Tensor:
    return HIDDEN[0] * float(HIDDEN[1].sum())


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (hidden_from_the_dispatcher, "misses part of the step's work"),
        (different_each_time, "two eager runs of the step differ"),
        (insensitive, "does not change its result"),
        (no_tensor, "nothing to compare"),
        (read_back, "misses part of the step's work"),
    ],
)
def test_a_step_that_cannot_be_judged_says_why(step: Callable[[], Any], reason: str) -> None:
    result = judged(step)
    assert not result.passed
    assert reason in result.reason
    assert "\n" not in result.reason


def test_a_step_that_fails_on_changed_values_says_so() -> None:
    x = torch.ones(2)

    def step() -> torch.Tensor:
        if x[0] != 1:
            raise ValueError("only ones")
        return x * 2

    result = judged(step)
    assert result.reason == "the step failed on changed values: ValueError: only ones"
    assert torch.equal(x, torch.ones(2))


def test_a_step_without_results_is_judged_by_what_it_writes() -> None:
    x, out = inputs(), torch.zeros(2, 8)

    def step() -> None:
        out.copy_(x * 2)

    assert judged(step).passed


def test_normalised_inputs_still_make_a_difference() -> None:
    x = inputs()
    assert judged(lambda: nn.functional.layer_norm(x, (8,))).passed


def test_zero_values_are_shifted() -> None:
    x = torch.zeros(4)
    assert judged(lambda: x * 2).passed


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64, torch.complex64, torch.float8_e4m3fn])
def test_narrow_and_wide_floats_are_changed(dtype: torch.dtype) -> None:
    x = torch.ones(4).to(dtype)
    assert judged(lambda: x.to(torch.complex64) * 2).passed


def test_last_places_are_forgiven_unless_a_tolerance_is_given() -> None:
    x = torch.ones(4)
    noise = iter(range(1000))

    def step() -> torch.Tensor:
        return x * 2 + (next(noise) % 2) * 1e-7

    loose = judged(step)
    assert loose.passed
    assert 0 < loose.tolerance.rtol < 1e-5
    assert not judged(step, Tolerance()).passed


def test_comparing_says_how_two_results_differ() -> None:
    exact = Tolerance()
    nan = torch.tensor([1.0, float("nan")])
    assert same_values(nan, nan.clone(), exact).equal
    assert not same_values(torch.tensor([1.0, 2.0]), nan, exact).equal
    assert same_values(torch.tensor([1.0, 2.0]), nan, exact).gap == "largest difference 0, 50% NaN"
    assert same_values(torch.ones(2), torch.ones(3), exact).gap == "float32[3] instead of float32[2]"
    assert compare([torch.ones(2)], [], exact).gap == "0 tensors instead of 1"
    assert same_values(torch.tensor([2**53]), torch.tensor([2**53 + 1]), exact).max_difference == 1.0
    assert same_values(torch.ones(2), torch.ones(2) + 1e-3, Tolerance(rtol=1e-2)).equal
    assert same_values(torch.empty(0), torch.empty(0), exact).equal
    assert not same_values(torch.tensor([1.0]), torch.tensor([float("inf")]), Tolerance(rtol=1.0)).equal
    assert same_values(torch.tensor([float("inf")]), torch.tensor([float("inf")]), exact).equal


def test_results_are_found_in_containers_and_dataclasses() -> None:
    import dataclasses

    @dataclasses.dataclass
    class Output:
        hidden: torch.Tensor
        extra: list[torch.Tensor]
        count: int = 1

    found = tensors_in({"a": [torch.zeros(1)], "b": Output(torch.zeros(2), [torch.zeros(3)])})
    assert [t.numel() for t in found] == [1, 2, 3]
