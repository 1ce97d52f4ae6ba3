"""What replay, values and a fresh load say: for every code a case that is flagged and one beside it that stays silent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from rebindlint.model import Severity
from rebindlint.runtime.findings import Finding

from .reload_models import (
    SIZE,
    Layer,
    RebindingLayer,
    StaleLayer,
    Tied,
    inputs,
    load,
    row_of,
    weight,
)
from .reload_runs import codes_of, reloaded, verify

# RT100 --------------------------------------------------------------------------------------------------------------


def test_rt100_a_step_that_cannot_be_replayed_is_never_silent() -> None:
    layer, x = load(RebindingLayer), inputs()
    report = verify(
        layer,
        lambda: layer.load(2),
        step=lambda model: torch.from_numpy(model(x).numpy() * 2),
    )
    (finding,) = report.with_code("RT100")
    assert "misses part of the step's work" in finding.message
    assert "model.derived" in finding.evidence[0]
    assert codes_of(report) == {"RT100"}  # what rests on the capture is withheld
    assert not report.ok


def test_rt100_a_synchronisation_is_named_with_its_line() -> None:
    layer, x = load(Layer), inputs()
    report = verify(layer, lambda: layer.load(2), step=lambda model: model(x) * float(x.sum()))
    (finding,) = report.findings
    assert "waits for a value" in finding.message
    assert "float(x.sum())" in finding.place.text


def test_rt100_does_not_silence_what_needs_no_capture() -> None:
    model = Tied()
    report = verify(
        model,
        lambda: setattr(model, "head", nn.Parameter(weight(2), requires_grad=False)),
        step=lambda model: model(inputs()) * float(model.embed.sum()),
        fresh=Tied,
    )
    assert codes_of(report) == {"RT100", "RT104", "RT107"}


# RT102 --------------------------------------------------------------------------------------------------------------


def test_rt102_replay_and_eager_step_differ() -> None:
    report = reloaded(RebindingLayer)
    (finding,) = report.with_code("RT102")
    assert finding.also == ("model.derived",)
    assert finding.compared is not None
    assert (finding.compared.equal, finding.compared.tolerance) == (False, "exact")
    assert finding.compared.max_difference is not None
    assert finding.compared.max_difference > 0.1


def test_rt102_the_same_weights_again_give_the_same_result() -> None:
    layer = load(RebindingLayer)
    report = verify(layer, lambda: layer.load(1))
    assert codes_of(report) == {"RT101"}  # dead all the same


# RT104 --------------------------------------------------------------------------------------------------------------


def test_rt104_a_stale_derived_weight_differs_from_a_fresh_load() -> None:
    report = reloaded(StaleLayer, with_fresh=True)
    by_tensor = {finding.tensor: finding for finding in report.with_code("RT104")}
    assert set(by_tensor) == {"", "model.derived"}
    assert by_tensor["model.derived"].evidence == ("its bytes did not change during the reload",)
    assert by_tensor["model.derived"].reader is not None
    assert "another result than on a fresh load" in by_tensor[""].message
    assert codes_of(report) == {"RT104"}  # no address moved, and the replay agrees


def test_rt104_names_the_first_module_that_differs() -> None:
    def build(seed: int, stale: bool) -> Any:
        model: Any = nn.Sequential(load(Layer, seed), load(StaleLayer, seed), load(Layer, seed))
        if stale:
            model[1].derived.copy_(weight(1).t())
        return model

    model = build(1, stale=False)

    def reload() -> None:
        for layer in model:
            layer.load(2)

    x = inputs()
    report = verify(model, reload, step=lambda model: model(x), fresh=lambda: build(2, stale=False))
    (about_result,) = [finding for finding in report.with_code("RT104") if not finding.tensor]
    assert "`1` (StaleLayer)" in about_result.message
    assert about_result.module == "StaleLayer"
    assert about_result.place.function == "Layer.forward"  # inherited
    assert about_result.evidence == ()  # a tensor differs, and is reported


def test_rt104_says_that_no_tensor_differs() -> None:
    class WithNumber(Layer):
        scale: float = 1.0

        def load(self, seed: int) -> Layer:
            if self.scale == 1.0:  # at the first load alone
                self.scale = 1.0 + seed
            return super().load(seed)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) * self.scale

    (finding,) = reloaded(WithNumber, with_fresh=True).with_code("RT104")
    assert finding.evidence == (
        "all tensors that were compared are equal to the fresh load's: what differs lies outside them",
    )


def test_rt102_says_that_the_eager_step_is_restless() -> None:
    class Restless(Layer):
        shaken: bool = False
        runs: int = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.runs += self.shaken
            return super().forward(x) + self.runs

    layer = load(Restless)
    assert isinstance(layer, Restless)

    def reload() -> None:
        layer.shaken = True
        layer.load(2)

    (finding,) = verify(layer, reload).with_code("RT102")
    (evidence,) = finding.evidence
    assert evidence.startswith("the eager step does not repeat itself since the reload")


def test_rt104_scratch_that_the_step_writes_is_not_compared() -> None:
    class WithScratch(Layer):
        scratch: torch.Tensor
        count: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scratch", torch.rand(2, SIZE))
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.scratch.copy_(super().forward(x))
            self.count.add_(1)
            return self.scratch + 1

    assert reloaded(WithScratch, with_fresh=True).findings == ()


def test_rt104_statistics_that_a_step_updates_without_saying_so_are_not_compared() -> None:
    def build(seed: int) -> Any:
        norm = nn.BatchNorm1d(SIZE)
        norm.weight.data.copy_(weight(seed)[0])
        return norm.train()

    model = build(1)
    x = inputs()
    report = verify(
        model,
        lambda: model.weight.data.copy_(weight(2)[0]),
        step=lambda model: model(x),
        fresh=lambda: build(2),
    )
    assert report.findings == ()


# RT105 --------------------------------------------------------------------------------------------------------------


class Materialising(Layer):
    """Allocates what a checkpoint should fill, and copies it over the good tensor."""

    missing = False

    def load(self, seed: int) -> Layer:
        loaded = torch.empty(SIZE, SIZE)  # allocates
        if not self.missing:
            loaded.copy_(weight(seed))
        self.weight.copy_(loaded)
        self.process_weights_after_loading()
        return self


@pytest.mark.parametrize("missing", [True, False])
def test_rt105_memory_that_nothing_wrote(missing: bool) -> None:
    layer: Any = load(Materialising)
    layer.missing = missing
    report = verify(layer, lambda: layer.load(2))
    if not missing:
        assert report.findings == ()
        return
    found = {finding.tensor: finding for finding in report.with_code("RT105")}
    assert set(found) == {"model.weight", "model.derived"}
    assert "100% of its elements are the filling itself" in found["model.weight"].evidence
    assert found["model.weight"].place.row == row_of("allocates", __file__)


def test_rt105_a_workspace_may_hold_anything() -> None:
    class WithWorkspace(Layer):
        workspace: torch.Tensor

        def process_weights_after_loading(self) -> None:
            super().process_weights_after_loading()
            if not hasattr(self, "workspace"):
                self.register_buffer("workspace", torch.empty(2, SIZE))
            self.unread = torch.empty(4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            torch.mm(x, self.weight, out=self.workspace)
            return self.workspace * 2

    assert codes_of(reloaded(WithWorkspace)) == {"RT109"}


def test_rt105_nan_of_the_model_itself_are_not_blamed_on_the_reload() -> None:
    layer = load(Layer)
    layer.register_buffer("mask", torch.full((2,), float("nan")))

    def reload() -> None:
        torch.empty(3)
        layer.load(2)

    assert verify(layer, reload).findings == ()


# RT106 --------------------------------------------------------------------------------------------------------------


class Folding(Layer):
    def process_weights_after_loading(self) -> None:
        self.weight.mul_(2)
        super().process_weights_after_loading()


@pytest.mark.parametrize(("kind", "flagged"), [(Folding, {"model.weight", "model.derived"}), (Layer, set())])
def test_rt106_the_same_weights_again_change_nothing(kind: Callable[[], Layer], flagged: set[str]) -> None:
    layer = load(kind)
    report = verify(layer, layer.process_weights_after_loading, same_weights=True)
    assert {finding.tensor for finding in report.with_code("RT106")} == flagged
    assert codes_of(report) <= {"RT106"}
    assert all(finding.severity is Severity.WARNING for finding in report.findings)


def test_rt106_is_silent_when_other_weights_were_loaded() -> None:
    layer = load(Folding)
    assert verify(layer, layer.process_weights_after_loading).findings == ()


# RT110 --------------------------------------------------------------------------------------------------------------


def test_rt110_what_should_have_been_updated_and_was_not() -> None:
    report = reloaded(StaleLayer, updates=["weight", "derived"])
    (finding,) = report.findings
    assert (finding.code, finding.severity, finding.tensor) == ("RT110", Severity.WARNING, "model.derived")


def test_rt110_is_silent_when_everything_was_updated() -> None:
    assert reloaded(Layer, updates=["weight", "model.d*"]).findings == ()


def test_rt110_a_pattern_that_names_nothing_is_said() -> None:
    report = reloaded(Layer, updates=["wieght"])
    assert report.notes == ("no tensor matches the update pattern 'wieght'",)


def test_findings_can_be_compared_and_sorted() -> None:
    first, second = reloaded(RebindingLayer).findings, reloaded(RebindingLayer).findings
    assert [finding.code for finding in first] == [finding.code for finding in second]
    assert sorted(first, key=lambda finding: finding.sort_key) == list(first)
    assert len(set(first)) == len(first)
    assert isinstance(first[0], Finding)
