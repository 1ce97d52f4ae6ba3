"""For every code a case that is flagged and one beside it that stays silent."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from rebindlint.model import Protocol, Severity
from rebindlint.runtime.codes import codes
from rebindlint.runtime.findings import Finding
from rebindlint.runtime.guard import Guard
from rebindlint.runtime.report import Report

from .reload_models import (
    SIZE,
    DataLayer,
    KernelLayer,
    Layer,
    ParameterLayer,
    RebindingLayer,
    StaleLayer,
    UnreadLayer,
    inputs,
    load,
    row_of,
    weight,
)

Reloading = dict[str, Any]


def verify(
    model: nn.Module,
    reload: Callable[[], object],
    *,
    step: Callable[[Any], Any] | None = None,
    fresh: Callable[[], Any] | None = None,
    **options: Any,
) -> Report:
    x = inputs()
    guard = Guard(model)
    guard.capture(step or (lambda model: model(x)))
    with guard.reloading(**options):
        reload()
    return guard.verify(fresh)


def reloaded(kind: Callable[[], Layer], *, with_fresh: bool = False, **options: Any) -> Report:
    layer = load(kind)
    return verify(layer, lambda: layer.load(2), fresh=(lambda: load(kind, 2)) if with_fresh else None, **options)


def codes_of(report: Report) -> set[str]:
    return {finding.code for finding in report.findings}


# RT101 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "tensor", "marker", "rules"),
    [
        (RebindingLayer, "model.derived", "rebinds attribute", ("RB101",)),
        (DataLayer, "model.weight", "rebinds data", ("RB102",)),
        (ParameterLayer, "model.weight", "rebinds parameter", ("RB103",)),
        (KernelLayer, "model.kernel.packed", "binds in kernel", ("RB201",)),
    ],
)
def test_rt101_a_rebound_weight_is_convicted_with_all_its_facts(
    kind: Callable[[], Layer], tensor: str, marker: str, rules: tuple[str, ...]
) -> None:
    report = reloaded(kind, with_fresh=True)
    (finding,) = report.with_code("RT101")
    assert finding.severity is Severity.ERROR
    assert finding.tensor == tensor
    assert finding.module == kind.__name__  # type: ignore[attr-defined]
    assert finding.reader is not None
    assert finding.reader.operator == "aten.mm.default"
    assert finding.reader.site is not None
    assert finding.reader.site.function == f"{'KernelLayer' if kind is KernelLayer else 'Layer'}.forward"
    assert finding.rebound[0].row == row_of(marker)
    if kind is KernelLayer:
        assert finding.rebound[1].row == row_of("rebuilds holder")
    assert finding.place == finding.rebound[0]
    assert finding.old is not None
    assert (finding.old.state, finding.old.nbytes) == ("unowned", SIZE * SIZE * 4)
    assert finding.new is not None
    assert finding.new.state == "live"
    assert finding.new.address != finding.old.address
    assert finding.static_rules == rules
    assert finding.protocol is Protocol.DIRECT
    assert "100% of the replay's result is NaN" in finding.evidence[0]
    assert codes_of(report) == {"RT101", "RT102"}


def test_rt101_a_layer_that_copies_is_acquitted() -> None:
    report = reloaded(Layer, with_fresh=True)
    assert report.findings == ()
    assert report.ok
    assert report.exit_code == 0
    assert [comparison.equal for comparison in report.comparisons] == [True, True, True]


def test_rt101_says_who_keeps_the_old_storage() -> None:
    layer = load(RebindingLayer)
    kept = layer.derived
    (finding,) = verify(layer, lambda: layer.load(2)).with_code("RT101")
    assert finding.old is not None
    assert finding.old.state == "kept"
    assert finding.evidence == ()  # what is not ours is not poisoned
    assert not kept.isnan().any()


def test_rt101_says_when_the_model_uses_it_under_another_name() -> None:
    layer = load(Layer)
    layer.other = weight(3)  # type: ignore[assignment]

    def swap() -> None:
        layer.derived, layer.other = layer.other, layer.derived  # type: ignore[assignment]

    report = verify(layer, swap)
    (finding,) = report.with_code("RT101")
    assert finding.old is not None
    assert finding.old.state == "elsewhere"
    assert report.with_code("RT102")


@pytest.mark.parametrize("how", ["release", "resize"])
def test_rt101_released_memory(how: str) -> None:
    layer = load(Layer)

    def release() -> None:
        if how == "release":
            del layer.derived
            layer.derived = weight(2).clone()
            del layer.derived
        else:
            layer.derived.untyped_storage().resize_(1 << 16)

    report = verify(layer, release)
    (finding,) = report.with_code("RT101")
    assert "released" in finding.message
    assert finding.tensor == "model.derived"
    if how == "resize":
        assert finding.old is not None
        assert finding.old.state == "moved"
        assert any("not replayed" in note for note in report.notes)
    else:
        assert finding.static_rules == ("RB106",)
        assert report.with_code("RT100")  # the eager step itself fails


def test_rt101_a_tensor_outside_the_roots_that_lost_its_owner() -> None:
    table = [weight(1)]  # reached by no path from the model
    hidden = {"table": table}

    class Looks(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ hidden_tables()["table"][0]

    def hidden_tables() -> dict[str, list[torch.Tensor]]:
        return TABLES

    TABLES.clear()
    TABLES.update(hidden)
    x = inputs()
    report = verify(Looks(), lambda: table.__setitem__(0, weight(2)), step=lambda model: model(x))
    (finding,) = report.with_code("RT101")
    assert finding.tensor == ""
    assert "outside the roots" in finding.message
    TABLES.clear()


TABLES: dict[str, list[torch.Tensor]] = {}


def test_rt101_inputs_made_on_the_way_are_nobodys_loss() -> None:
    import numpy as np

    layer = load(Layer)

    def step(model: nn.Module) -> Any:
        x = torch.frombuffer(np.ones(SIZE, dtype=np.float32), dtype=torch.float32).reshape(1, SIZE)
        return model(x)

    report = verify(layer, lambda: layer.load(2), step=step)
    assert report.findings == ()
    assert report.notes == ("1 tensor(s) that the step makes past the dispatcher are taken for constants",)


def test_rt101_garbage_in_cycles_does_not_hide_the_proof() -> None:
    class Holder:
        def __init__(self, tensor: torch.Tensor) -> None:
            self.packed = tensor
            self.me = self

    layer = load(Layer)
    layer.kernel = Holder(weight(1))  # type: ignore[assignment]
    x = inputs()
    gc.disable()
    try:
        report = verify(
            layer,
            lambda: setattr(layer, "kernel", Holder(weight(2))),
            step=lambda model: x @ model.kernel.packed,
        )
    finally:
        gc.enable()
    (finding,) = report.with_code("RT101")
    assert finding.old is not None
    assert finding.old.state == "unowned"


# RT102 -----------------------------------------------------------------------------------------------------------


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


# RT103 -----------------------------------------------------------------------------------------------------------


class NativeMatmul:
    """Owns a native object behind a pointer, as a oneDNN handler does; the pointer is a number to us."""

    live: dict[int, torch.Tensor] = {}  # noqa: RUF012
    next_pointer = 1 << 32

    def __init__(self, value: torch.Tensor) -> None:
        NativeMatmul.next_pointer += 64
        self.handle = torch.tensor(NativeMatmul.next_pointer, dtype=torch.int64)
        NativeMatmul.live[NativeMatmul.next_pointer] = value.clone()

    def __del__(self) -> None:
        NativeMatmul.live.pop(int(self.handle), None)


class NativeLayer(Layer):
    keep_handler = False

    def process_weights_after_loading(self) -> None:
        if self.keep_handler and hasattr(self, "handler"):
            NativeMatmul.live[int(self.handler.handle)].copy_(self.weight)
        else:
            self.handler = NativeMatmul(self.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.rebindlint_native.matmul(x, self.handler.handle)  # type: ignore[no-any-return]


class KeptNativeLayer(NativeLayer):
    keep_handler = True


@pytest.fixture
def native() -> Any:
    """An operator as opaque as one of C++: it is run whole, never looked into."""
    lib = torch.library.Library("rebindlint_native", "DEF")
    lib.define("matmul(Tensor x, Tensor handle) -> Tensor")

    def matmul(x: torch.Tensor, handle: torch.Tensor) -> torch.Tensor:
        with torch._C._DisableTorchDispatch():
            return x @ NativeMatmul.live[handle.item()]  # type: ignore[index]

    lib.impl("matmul", matmul, "CPU")
    torch.library._impls -= lib._op_impls
    yield
    lib._destroy()  # type: ignore[no-untyped-call]
    NativeMatmul.live.clear()


def test_rt103_a_replaced_handle(native: None) -> None:
    report = reloaded(NativeLayer)
    (finding,) = report.with_code("RT103")
    assert finding.tensor == "model.handler.handle"
    assert finding.reader is not None
    assert (finding.reader.operator, finding.reader.argument) == ("rebindlint_native.matmul.default", "handle")
    assert "0x1000000" in finding.evidence[0]
    assert codes_of(report) == {"RT102", "RT103"}  # replayed without a crash: the owner is kept


def test_rt103_a_handle_that_stays_is_silent(native: None) -> None:
    assert reloaded(KeptNativeLayer).findings == ()


def test_rt103_a_handle_that_was_overwritten_in_place(native: None) -> None:
    layer = load(NativeLayer)
    other = NativeMatmul(weight(2))
    x = inputs()
    report = verify(layer, lambda: layer.handler.handle.copy_(other.handle), step=lambda model: model(x))
    assert codes_of(report) == {"RT103"}


def test_rt103_small_integers_are_no_handles() -> None:
    layer = load(Layer)
    layer.position = torch.tensor(3)  # type: ignore[assignment]
    x = inputs()
    report = verify(
        layer,
        lambda: setattr(layer, "position", torch.tensor(5)),
        step=lambda model: model(x) + model.position,
    )
    assert codes_of(report) == {"RT101", "RT102"}


# RT104 -----------------------------------------------------------------------------------------------------------


def test_rt104_a_stale_derived_weight_differs_from_a_fresh_load() -> None:
    report = reloaded(StaleLayer, with_fresh=True)
    by_tensor = {finding.tensor: finding for finding in report.with_code("RT104")}
    assert set(by_tensor) == {"", "model.derived"}
    assert by_tensor["model.derived"].evidence == ("its bytes did not change during the reload",)
    assert by_tensor["model.derived"].reader is not None
    assert "another result than on a fresh load" in by_tensor[""].message
    assert codes_of(report) == {"RT104"}  # no address moved, and the replay agrees


def test_rt104_names_the_first_module_that_differs() -> None:
    def build(seed: int, stale: bool) -> nn.Sequential:
        model = nn.Sequential(load(Layer, seed), load(StaleLayer, seed), load(Layer, seed))
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


def test_rt104_scratch_that_the_step_writes_is_not_compared() -> None:
    class WithScratch(Layer):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scratch", torch.rand(2, SIZE))
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.scratch.copy_(super().forward(x))
            self.count.add_(1)
            return self.scratch + 1

    assert reloaded(WithScratch, with_fresh=True).findings == ()


# RT105 -----------------------------------------------------------------------------------------------------------


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
    layer = load(Materialising)
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


# RT106 -----------------------------------------------------------------------------------------------------------


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


# RT107 -----------------------------------------------------------------------------------------------------------


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Parameter(weight(1), requires_grad=False)
        self.head = self.embed

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.embed


def test_rt107_two_names_that_no_longer_share() -> None:
    model = Tied()

    def untie() -> None:
        model.head = nn.Parameter(weight(2), requires_grad=False)
        model.embed.copy_(weight(2))

    report = verify(model, untie)
    (finding,) = report.findings
    assert (finding.code, finding.severity) == ("RT107", Severity.WARNING)
    assert (finding.tensor, finding.also) == ("model.head", ("model.embed",))
    assert finding.rebound[0].function.endswith("untie")
    assert report.ok
    assert report.exit_code == 1


def test_rt107_names_that_stay_tied_are_silent() -> None:
    model = Tied()
    assert verify(model, lambda: model.embed.copy_(weight(2))).findings == ()


# RT108 -----------------------------------------------------------------------------------------------------------


class Transposing(Layer):
    def load(self, seed: int) -> Layer:
        self.weight.copy_(weight(seed))
        self.weight.data = self.weight.data.t()  # transposes
        return self

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight


def test_rt108_another_layout_on_the_storage_that_is_read() -> None:
    report = reloaded(Transposing)
    (finding,) = report.with_code("RT108")
    assert finding.severity is Severity.ERROR
    assert finding.rebound[0].row == row_of("transposes", __file__)
    assert finding.reader is not None
    assert codes_of(report) == {"RT102", "RT108"}


def test_rt108_a_layout_that_nobody_reads_is_a_note() -> None:
    layer = load(Layer)
    buffer = torch.zeros(8)
    layer.window = buffer[:4]  # type: ignore[assignment]
    report = verify(layer, lambda: setattr(layer, "window", buffer[:2]))
    (finding,) = report.findings
    assert (finding.code, finding.severity) == ("RT108", Severity.NOTE)
    assert report.exit_code == 0


def test_rt108_the_same_layout_again_is_silent() -> None:
    layer = load(Layer)
    assert verify(layer, lambda: setattr(layer, "weight", nn.Parameter(layer.weight, False))).findings == ()


# RT109 -----------------------------------------------------------------------------------------------------------


def test_rt109_a_rebound_tensor_that_no_step_reads_is_a_note() -> None:
    report = reloaded(UnreadLayer, with_fresh=True)
    (finding,) = report.findings
    assert (finding.code, finding.severity, finding.tensor) == ("RT109", Severity.NOTE, "model.unread")
    assert finding.rebound[0].row == row_of("rebinds unread")
    assert report.ok
    assert report.exit_code == 0


def test_rt109_is_silent_about_what_the_step_itself_rebinds() -> None:
    class Remembering(Layer):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.last = super().forward(x)
            return self.last

    assert reloaded(Remembering).findings == ()


# RT110 -----------------------------------------------------------------------------------------------------------


def test_rt110_what_should_have_been_updated_and_was_not() -> None:
    report = reloaded(StaleLayer, updates=["weight", "derived"])
    (finding,) = report.findings
    assert (finding.code, finding.severity, finding.tensor) == ("RT110", Severity.WARNING, "model.derived")


def test_rt110_is_silent_when_everything_was_updated() -> None:
    assert reloaded(Layer, updates=["weight", "model.d*"]).findings == ()


def test_rt110_a_pattern_that_names_nothing_is_said() -> None:
    report = reloaded(Layer, updates=["wieght"])
    assert report.notes == ("no tensor matches the update pattern 'wieght'",)


# RT100 -----------------------------------------------------------------------------------------------------------


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


def test_every_code_has_a_flagged_and_a_silent_case() -> None:
    names = [name for name in globals() if name.startswith("test_rt")]
    for code in codes():
        assert len([name for name in names if name.startswith(f"test_{code.lower()}_")]) >= 2, code


def test_findings_can_be_compared_and_sorted() -> None:
    first, second = reloaded(RebindingLayer).findings, reloaded(RebindingLayer).findings
    assert [finding.code for finding in first] == [finding.code for finding in second]
    assert sorted(first, key=lambda finding: finding.sort_key) == list(first)
    assert len(set(first)) == len(first)
    assert isinstance(first[0], Finding)
