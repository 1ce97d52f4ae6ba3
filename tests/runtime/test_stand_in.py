"""A recording that stands in for a graph: native handles, values that are waited for, and what lies outside the step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from rebindlint.model import Severity
from rebindlint.runtime import Guard, Report


class Handle:
    """Names a weight in a native library by number; here the library is a table and the number a row."""

    def __init__(self, row: int) -> None:
        self.number = torch.tensor([row])

    def __del__(self) -> None:
        """Would free the weight in the library."""


class Packed(nn.Module):
    table: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        self.register_buffer("table", torch.randn(3, 4, 4, generator=generator))
        self.handle = Handle(0)
        self.head = Handle(1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight: torch.Tensor = self.table.index_select(0, self.handle.number)[0]
        return x @ weight


X = torch.linspace(-1, 1, 4).reshape(1, 4)


def verified(
    model: nn.Module, reload: Callable[[], Any], *, stand_in: bool, fresh: nn.Module | None = None, **options: Any
) -> Report:
    guard = Guard(model, device="cpu", stand_in=stand_in)
    guard.capture(lambda model: model(X))
    with guard.reloading():
        reload()
    return guard.verify((lambda: fresh) if fresh is not None else None, **options)


def errors(report: Report) -> list[str]:
    return [finding.code for finding in report.findings if finding.severity is Severity.ERROR]


def test_a_replaced_handle_is_an_error_where_a_graph_could_hold_it() -> None:
    model = Packed()
    report = verified(model, lambda: setattr(model, "handle", Handle(2)), stand_in=False)
    assert errors(report) == ["RT102", "RT103"]


def test_a_replaced_handle_is_followed_where_no_graph_holds_it() -> None:
    model = Packed()
    old = model.handle
    report = verified(model, lambda: setattr(model, "handle", Handle(2)), stand_in=True)
    assert errors(report) == []
    assert any("the reload replaced 1 native handle of the step;" in note for note in report.notes)
    assert all(comparison.equal for comparison in report.comparisons)
    assert int(old.number) == 0, "its owner frees what the number names"


def test_a_handle_without_a_successor_stays_an_error() -> None:
    model = Packed()

    def reload() -> None:
        model.handle = None  # type: ignore[assignment]

    report = verified(model, reload, stand_in=True)
    assert "RT103" in errors(report)


class Waiting(nn.Module):
    """Asks for a value on the way; what it does then does not depend on weights."""

    flag: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("flag", torch.ones(1, dtype=torch.bool))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.layer(x)
        return y if self.flag.all().item() else y * 2


@pytest.mark.parametrize(("stand_in", "codes"), [(False, ["RT100"]), (True, [])])
def test_a_value_that_is_waited_for(stand_in: bool, codes: list[str]) -> None:
    model = Waiting()
    report = verified(model, lambda: model.layer.weight.detach().mul_(3), stand_in=stand_in)
    assert errors(report) == codes


def logits(model: nn.Module, result: torch.Tensor) -> torch.Tensor:
    assert isinstance(model, Packed)
    weight: torch.Tensor = model.table.index_select(0, model.head.number)[0]
    return result @ weight


def test_what_is_computed_outside_the_step_is_compared_with_a_fresh_load() -> None:
    model, fresh = Packed(), Packed()
    fresh.handle, fresh.head = Handle(2), Handle(2)
    report = verified(
        model, lambda: setattr(model, "handle", Handle(2)), stand_in=True, fresh=fresh, beyond={"logits": logits}
    )
    assert errors(report) == ["RT104"]
    (finding,) = report.with_code("RT104")
    assert "the logits differ from those of a fresh load" in finding.message
    assert finding.evidence == ("the reload replaced 1 native handle and left 1 as it was: `model.head.number`",)


def test_what_agrees_outside_the_step_is_listed() -> None:
    model, fresh = Packed(), Packed()
    fresh.handle = Handle(2)
    report = verified(
        model, lambda: setattr(model, "handle", Handle(2)), stand_in=True, fresh=fresh, beyond={"logits": logits}
    )
    assert errors(report) == []
    assert any(c.subject == "logits against a fresh load" and c.equal for c in report.comparisons)


class Cached(nn.Module):
    """Writes one slot of a cache that is much larger than its result."""

    cache: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(4), requires_grad=False)
        self.derived = self.weight * 2
        self.register_buffer("cache", torch.zeros(1000, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x @ self.derived
        self.cache[0].copy_(y[0])
        return y


def test_nan_are_counted_in_the_result_alone_and_partial_results_come_before_any_run() -> None:
    model = Cached()
    runs: list[None] = []
    model.register_forward_hook(lambda *_: runs.append(None))
    seen: list[tuple[Report, int]] = []

    def reload() -> None:
        model.derived = model.weight * 3
        runs.clear()

    report = verified(model, reload, stand_in=False, partial=lambda known: seen.append((known, len(runs))))
    ((known, count),) = seen
    assert count == 0
    assert errors(known) == ["RT100", "RT101"]
    assert "the process ended while the step was run" in known.with_code("RT100")[0].message
    assert errors(report) == ["RT101", "RT102"]
    (dead,) = report.with_code("RT101")
    assert "100% of the replay's result is NaN" in dead.evidence[0]


class Loud(torch.Tensor):
    """A tensor class of the host that sees every operator before torch does."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


def test_readers_are_where_the_operator_is_called_and_not_where_a_tensor_class_passes_it_on() -> None:
    model = nn.Module()
    model.weight = torch.eye(4).as_subclass(Loud)
    guard = Guard(model, device="cpu")
    guard.capture(lambda model: torch.mm(X, model.weight))
    with guard.reloading():
        model.weight = torch.ones(4, 4).as_subclass(Loud)
    (finding,) = guard.verify().with_code("RT101")
    assert finding.reader is not None
    assert finding.reader.site is not None
    assert "torch.mm" in finding.reader.site.text
