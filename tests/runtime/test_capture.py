from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from rebindlint.runtime.capture import NotReplayable, Recording, record
from rebindlint.runtime.recorder import External
from rebindlint.runtime.sites import resolve

from .reload_models import Layer, inputs, load, row_of, two_tensor, weight
from .reload_models import library as make_library


def external(recording: Recording, tensor: torch.Tensor) -> External:
    return recording.externals[tensor.untyped_storage()._cdata]


def replay_agrees(recording: Recording, step: Callable[[], torch.Tensor]) -> bool:
    with torch.no_grad():
        expected = step()
    recording.replay()
    return torch.equal(recording.outputs[0], expected)


def test_the_storages_that_a_step_uses_and_did_not_make_are_external() -> None:
    layer, x = load(Layer), inputs()
    recording = record(lambda: layer(x))
    assert set(recording.externals) == {t.untyped_storage()._cdata for t in (x, layer.weight, layer.derived)}
    reader = external(recording, layer.derived).reader
    assert (reader.operator, reader.argument, reader.writes) == ("aten.mm.default", "mat2", False)
    assert reader.site is not None
    site = resolve(reader.site)
    assert (site.row, site.function) == (row_of("reads", site.filename), "Layer.forward")
    assert site.text.startswith("return x @ self.weight")


def test_a_computing_reader_is_named_before_a_view() -> None:
    layer = nn.Linear(2, 2)
    x = torch.randn(1, 2)
    recording = record(lambda: layer(x))
    uses = [use.operator for use in external(recording, layer.weight).uses]
    assert uses == ["aten.t.default", "aten.addmm.default"]
    assert external(recording, layer.weight).reader.operator == "aten.addmm.default"


def test_a_replay_follows_new_values_in_place() -> None:
    layer, x = load(Layer), inputs()
    recording = record(lambda: layer(x))
    layer.load(2)
    x.copy_(torch.ones_like(x))
    assert replay_agrees(recording, lambda: layer(x))


def test_a_replay_stays_on_the_storages_of_the_capture() -> None:
    layer, x = load(Layer), inputs()
    recording = record(lambda: layer(x))
    before = recording.outputs[0].clone()
    layer.weight.data, layer.derived = weight(2), weight(3)
    recording.replay()
    assert torch.equal(recording.outputs[0], before)


class Mixed(nn.Module):
    """Views, in-place operators, several results, uninitialised memory, constants, indexing, random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.counter = torch.zeros(2)
        self.table = torch.randn(8, 4)
        self.index = torch.tensor([3, 1])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.counter.add_(1)
        rows = self.table[self.index]
        values, places = x.max(dim=1)
        out = torch.empty(2, 4)
        torch.mul(rows, 2, out=out)
        out[:, 1:3].add_(values.unsqueeze(1))
        constant = torch.tensor([1.0, 2.0, 3.0, 4.0])
        constant.mul_(2)
        dropped = nn.functional.dropout(out, 0.5)
        return (
            torch.cat([dropped.view(4, 2).t().reshape(2, 4), constant.expand(2, 4)]) + places.sum() + self.counter.sum()
        )


def test_views_writes_constants_and_random_numbers_are_replayed() -> None:
    model, x = Mixed(), inputs()
    model(x)
    recording = record(lambda: model(x))
    assert recording.obstacles == []
    for _ in range(3):
        x.copy_(torch.randn_like(x))
        state, counter = torch.get_rng_state(), model.counter.clone()
        expected = model(x)
        torch.set_rng_state(state)
        model.counter.copy_(counter)
        recording.replay()
        assert torch.equal(recording.outputs[0], expected)
    assert external(recording, model.counter).written
    assert not external(recording, model.table).written


def test_every_alias_that_is_kept_is_counted() -> None:
    from rebindlint.runtime.storages import only_owner

    model, x = Mixed(), inputs()
    recording = record(lambda: model(x))
    held = {n: recording.externals[n] for n in (t.untyped_storage()._cdata for t in (model.table, model.counter))}
    assert not any(only_owner(e.tensor, recording.held(n)) for n, e in held.items())
    del model.table, model.counter
    assert all(only_owner(e.tensor, recording.held(n)) for n, e in held.items())


@pytest.fixture(scope="module")
def library() -> Iterator[dict[str, Any]]:
    """Custom operators written in Python that read a live attribute, as engines register their attention."""
    state: dict[str, Any] = {}

    def attend_into(x: torch.Tensor, out: torch.Tensor) -> None:
        out.copy_(x @ state["w"])

    lib = make_library("rebindlint_test", "DEF")
    lib.define("attend(Tensor x) -> Tensor")
    lib.impl("attend", lambda x: x @ state["w"], "CPU")
    lib.define("attend_into(Tensor x, Tensor(a!) out) -> ()")
    lib.impl("attend_into", attend_into, "CompositeExplicitAutograd")
    yield state
    lib._destroy()


@pytest.mark.parametrize("into", [False, True])
def test_operators_written_in_python_are_looked_into(library: dict[str, Any], into: bool) -> None:
    library["w"] = weight(1)
    x = inputs()

    def step() -> torch.Tensor:
        if not into:
            return torch.ops.rebindlint_test.attend(x)  # type: ignore[no-any-return]
        out = torch.empty_like(x)
        torch.ops.rebindlint_test.attend_into(x, out)
        return out

    recording = record(step)
    old = library["w"]
    assert external(recording, old).reader.operator == "aten.matmul.default"  # below autograd it is not decomposed
    expected = recording.outputs[0].clone()
    library["w"] = weight(2)
    recording.replay()
    assert torch.equal(recording.outputs[0], expected)


def test_operators_of_a_named_namespace_are_looked_into(
    monkeypatch: pytest.MonkeyPatch, library: dict[str, Any]
) -> None:
    library["w"] = weight(1)
    x = inputs()
    monkeypatch.setattr(torch.library, "_impls", set())
    leaf = record(lambda: torch.ops.rebindlint_test.attend(x))
    inside = record(lambda: torch.ops.rebindlint_test.attend(x), look_inside=["rebindlint_test"])
    number = library["w"].untyped_storage()._cdata
    assert number not in leaf.externals
    assert number in inside.externals


def test_wrapping_tensors_are_recorded_by_what_they_wrap() -> None:
    wrapped = two_tensor(weight(1), weight(2))
    x = inputs()
    recording = record(lambda: two_tensor(x, x) @ wrapped)
    assert {t.untyped_storage()._cdata for t in (wrapped.a, wrapped.b, x)} == set(recording.externals)
    wrapped.a.copy_(weight(3))
    recording.replay()
    assert torch.equal(recording.outputs[0], x @ weight(3))


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (lambda x: x * float(x.sum()), "waits for a value"),
        (lambda x: x if bool(x.sum() > 0) else -x, "waits for a value"),
        (lambda x: x.nonzero(), "shape depends on values"),
        (lambda x: x[x > 0], "shape depends on values"),
        (lambda x: torch.equal(x, x) and x, "waits for a value"),
    ],
    ids=["float", "branch", "nonzero", "mask", "equal"],
)
def test_what_no_graph_can_hold_is_an_obstacle(step: Callable[[torch.Tensor], Any], reason: str) -> None:
    x = inputs()
    recording = record(lambda: step(x))
    (obstacle,) = recording.obstacles
    assert reason in obstacle.reason
    assert obstacle.site is not None
    assert resolve(obstacle.site).filename.endswith("test_capture.py")


@pytest.mark.parametrize(
    "step",
    [lambda x: x[torch.tensor([1, 0])], lambda x: x.repeat_interleave(torch.tensor([1, 2]), 0, output_size=3)],
    ids=["index", "repeat"],
)
def test_shapes_that_are_known_are_no_obstacle(step: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = inputs()
    recording = record(lambda: step(x))
    assert recording.obstacles == []
    x.add_(1)
    assert replay_agrees(recording, lambda: step(x))


def test_a_shape_that_changes_on_replay_is_refused() -> None:
    x = torch.ones(4)
    recording = record(lambda: x.nonzero())
    x[0] = 0
    with pytest.raises(NotReplayable, match="its shape depends on values"):
        recording.replay()


def test_an_operator_that_fails_on_replay_is_one_line() -> None:
    x, index = torch.ones(4), torch.tensor([1])
    recording = record(lambda: x[index])
    index.fill_(9)
    with pytest.raises(NotReplayable, match=r"replaying aten\.index\.Tensor failed: IndexError: [^\n]*$"):
        recording.replay()


def test_a_step_that_only_runs_without_a_mode_is_refused() -> None:
    from torch.utils._python_dispatch import _get_current_dispatch_mode

    def step() -> torch.Tensor:
        if _get_current_dispatch_mode() is not None:
            raise ValueError("no modes here\nsecond line")
        return torch.ones(1)

    with pytest.raises(NotReplayable, match=r"cannot run under a dispatch mode: ValueError: no modes here$"):
        record(step)


def test_resized_memory_is_noticed() -> None:
    layer, x = load(Layer), inputs()
    recording = record(lambda: layer(x))
    assert recording.moved() == []
    layer.derived.untyped_storage().resize_(0)
    assert [e.number for e in recording.moved()] == [layer.derived.untyped_storage()._cdata]


def test_nothing_of_the_step_is_kept_but_memory() -> None:
    import weakref

    layers, x = [load(Layer)], inputs()
    recording = record(lambda: layers[0](x))
    gone = weakref.ref(layers.pop())
    assert gone() is None
    recording.replay()
