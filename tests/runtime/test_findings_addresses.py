"""What the addresses say: for every code a case that is flagged and one beside it that stays silent."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from rebindlint.model import Protocol, Severity

from .reload_models import (
    SIZE,
    DataLayer,
    KernelLayer,
    Layer,
    ParameterLayer,
    RebindingLayer,
    Tied,
    UnreadLayer,
    inputs,
    library,
    load,
    row_of,
    two_tensor,
    weight,
)
from .reload_runs import codes_of, reloaded, verify

# RT101 --------------------------------------------------------------------------------------------------------------


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
    assert finding.module == kind.__name__
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
    layer.other = weight(3)

    def swap() -> None:
        layer.derived, layer.other = layer.other, layer.derived

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
    assert report.notes == ("1 tensor that the step makes past the dispatcher is taken for a constant",)


def test_rt101_wrapped_weights_are_judged_by_what_they_wrap() -> None:
    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = two_tensor(weight(1), weight(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = x @ self.w
            return result

    model: Any = Wrapped()
    x = two_tensor(inputs(), inputs())
    report = verify(model, lambda: setattr(model, "w", two_tensor(weight(3), model.w.b)), step=lambda model: model(x))
    (finding,) = report.with_code("RT101")
    assert finding.tensor == "model.w.a"
    assert codes_of(report) == {"RT101", "RT102"}


def test_rt101_memory_of_an_array_is_never_poisoned() -> None:
    array = bytearray(b"\0" * SIZE * SIZE * 4)
    layer = load(Layer)
    layer.derived = torch.frombuffer(array, dtype=torch.float32).reshape(SIZE, SIZE)
    report = verify(layer, lambda: setattr(layer, "derived", weight(2)))
    (finding,) = report.with_code("RT101")
    assert finding.evidence == ()
    assert bytes(array) == bytes(len(array))


def test_rt101_garbage_in_cycles_does_not_hide_the_proof() -> None:
    class Holder:
        def __init__(self, tensor: torch.Tensor) -> None:
            self.packed = tensor
            self.me = self

    layer = load(Layer)
    layer.kernel = Holder(weight(1))
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


# RT103 --------------------------------------------------------------------------------------------------------------


FIRST_POINTER = 1 << 32


class NativeMatmul:
    """Owns a native object behind a pointer, as a oneDNN handler does; the pointer is a number to us."""

    live: dict[int, torch.Tensor] = {}  # noqa: RUF012
    next_pointer = FIRST_POINTER

    def __init__(self, value: torch.Tensor) -> None:
        self.handle = torch.tensor(NativeMatmul.next_pointer, dtype=torch.int64)
        NativeMatmul.live[NativeMatmul.next_pointer] = value.clone()
        NativeMatmul.next_pointer += 64

    def __del__(self) -> None:
        NativeMatmul.live.pop(int(self.handle), None)


class NativeLayer(Layer):
    keep_handler = False
    handler: NativeMatmul

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
    lib = library("rebindlint_native", "DEF")
    lib.define("matmul(Tensor x, Tensor handle) -> Tensor")

    def matmul(x: torch.Tensor, handle: torch.Tensor) -> torch.Tensor:
        with torch._C._DisableTorchDispatch():
            return x @ NativeMatmul.live[handle.item()]  # type: ignore[index]

    lib.impl("matmul", matmul, "CPU")
    torch.library._impls -= lib._op_impls
    NativeMatmul.next_pointer = FIRST_POINTER
    yield
    lib._destroy()
    NativeMatmul.live.clear()


def test_rt103_a_replaced_handle(native: None) -> None:
    report = reloaded(NativeLayer)
    (finding,) = report.with_code("RT103")
    assert finding.tensor == "model.handler.handle"
    assert finding.reader is not None
    assert (finding.reader.operator, finding.reader.argument) == ("rebindlint_native.matmul.default", "handle")
    assert finding.evidence == (f"the handle was {FIRST_POINTER:#x} at capture",)
    assert codes_of(report) == {"RT102", "RT103"}  # replayed without a crash: the owner is kept


def test_rt103_a_handle_that_stays_is_silent(native: None) -> None:
    assert reloaded(KeptNativeLayer).findings == ()


def test_rt103_a_handle_that_was_overwritten_in_place(native: None) -> None:
    layer: Any = load(NativeLayer)
    other = NativeMatmul(weight(2))
    x = inputs()
    report = verify(layer, lambda: layer.handler.handle.copy_(other.handle), step=lambda model: model(x))
    assert codes_of(report) == {"RT103"}


def test_rt103_small_integers_are_no_handles() -> None:
    layer = load(Layer)
    layer.position = torch.tensor(3)
    x = inputs()
    report = verify(
        layer,
        lambda: setattr(layer, "position", torch.tensor(5)),
        step=lambda model: model(x) + model.position,
    )
    assert codes_of(report) == {"RT101", "RT102"}


# RT107 --------------------------------------------------------------------------------------------------------------


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


# RT108 --------------------------------------------------------------------------------------------------------------


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
    layer.window = buffer[:4]
    report = verify(layer, lambda: setattr(layer, "window", buffer[:2]))
    (finding,) = report.findings
    assert (finding.code, finding.severity) == ("RT108", Severity.NOTE)
    assert report.exit_code == 0


def test_rt108_the_same_layout_again_is_silent() -> None:
    layer = load(Layer)
    assert verify(layer, lambda: setattr(layer, "weight", nn.Parameter(layer.weight, False))).findings == ()


# RT109 --------------------------------------------------------------------------------------------------------------


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
