from __future__ import annotations

import functools
import gc
import time
import types
import weakref
from collections import OrderedDict, UserDict, deque, namedtuple
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
import torch
from torch import nn

from rebindlint.runtime.census import Census, Limits, take_census

from .reload_models import two_tensor


def paths(root: object, **limits: Any) -> set[str]:
    return {record.path for record in take_census({"model": root}, Limits(**limits)).records}


class Slotted:
    __slots__ = ("unset", "w")

    def __init__(self) -> None:
        self.w = torch.zeros(2)


class SlottedChild(Slotted):
    __slots__ = ("v",)

    def __init__(self) -> None:
        super().__init__()
        self.v = torch.zeros(2)


class Shared:
    table: ClassVar[dict[str, torch.Tensor]] = {"t": torch.zeros(2)}


Pair = namedtuple("Pair", ["left", "right"])


def closure(tensor: torch.Tensor) -> Any:
    def apply() -> torch.Tensor:
        return tensor

    return apply


ONE = torch.ones(1)


def default(value: torch.Tensor = ONE, *, named: torch.Tensor = ONE) -> None:
    """Its defaults hold tensors."""


class Method:
    def __init__(self) -> None:
        self.w = torch.zeros(2)

    def run(self) -> None:
        """Its ``__self__`` holds a tensor."""


def carrying() -> torch.Tensor:
    tensor = nn.Parameter(torch.zeros(2))
    tensor.scale = torch.ones(1)  # type: ignore[attr-defined]
    return tensor


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": torch.zeros(1), 3: [torch.zeros(1)]}, {"['a']", "[3][0]"}),
        (OrderedDict(a=torch.zeros(1)), {"['a']"}),
        ((torch.zeros(1), deque([torch.zeros(1)])), {"[0]", "[1][0]"}),
        (Pair(torch.zeros(1), None), {".left"}),
        ({torch.zeros(1)}, {"{0}"}),
        (UserDict(a=torch.zeros(1)), {".data['a']"}),
        (types.MappingProxyType({"a": torch.zeros(1)}), {"['a']"}),
        (types.SimpleNamespace(a=torch.zeros(1)), {".a"}),
        (Slotted(), {".w"}),
        (SlottedChild(), {".w", ".v"}),
        (closure(torch.zeros(1)), {".<closure tensor>"}),
        (default, {".<default 0>", ".<default named>"}),
        (functools.partial(print, torch.zeros(1), end=torch.zeros(1)), {".args[0]", ".keywords['end']"}),
        (Method().run, {".__self__.w"}),
        (carrying(), {"", ".scale"}),
        (Shared(), {".<class Shared>.table['t']"}),
        (torch.eye(2).to_sparse(), {"", "._indices()", "._values()"}),
        (two_tensor(torch.zeros(1), torch.zeros(1)), {".a", ".b"}),
    ],
    ids=lambda value: "" if isinstance(value, set) else type(value).__name__,
)
def test_every_way_to_hold_a_tensor_is_followed(value: object, expected: set[str]) -> None:
    holder = types.SimpleNamespace(x=value)
    assert paths(holder) == {"model.x" + path for path in expected}


def test_modules_give_registered_names_first_and_plain_attributes_too() -> None:
    inner = nn.Linear(2, 2)
    model: Any = nn.Module()
    model.backref = types.SimpleNamespace(layer=inner)  # found earlier, yet not the name users know
    model.layer = inner
    model.register_buffer("cache", torch.zeros(1))
    model.plain = torch.zeros(1)
    records = take_census({"model": model}).records
    kinds = {record.path: (record.kind, record.module_class) for record in records}
    assert kinds == {
        "model.layer.weight": ("parameter", "Linear"),
        "model.layer.bias": ("parameter", "Linear"),
        "model.cache": ("buffer", "Module"),
        "model.plain": ("attribute", "Module"),
    }


def test_a_tensor_is_recorded_under_every_path() -> None:
    tensor = torch.zeros(4)
    census = take_census({"model": {"a": tensor, "b": tensor, "view": tensor[1:]}})
    assert {record.path for record in census.records} == {"model['a']", "model['b']", "model['view']"}
    assert census.storages() == 1
    assert [record.offset for record in census.records] == [0, 0, 1]


def test_the_gradient_is_reached() -> None:
    parameter = nn.Parameter(torch.zeros(2))
    parameter.grad = torch.zeros(2)
    assert paths({"p": parameter}) == {"model['p']", "model['p'].grad"}


def test_cycles_and_depth_do_not_matter() -> None:
    root: list[Any] = [torch.zeros(1)]
    root.append(root)
    inner: Any = torch.zeros(1)
    for _ in range(5_000):
        inner = [inner]
    root.append(inner)
    assert len(take_census({"model": root}).records) == 2


def test_frozen_garbage_collection_hides_nothing() -> None:
    model = nn.Linear(2, 2)
    gc.collect()
    gc.freeze()
    try:
        assert paths(model) == {"model.weight", "model.bias"}
    finally:
        gc.unfreeze()


def test_garbage_collection_is_left_as_it_was() -> None:
    gc.disable()
    try:
        take_census({"model": [torch.zeros(1)]})
        assert not gc.isenabled()
    finally:
        gc.enable()
    take_census({"model": [torch.zeros(1)]})
    assert gc.isenabled()


def test_a_huge_container_is_cut_and_reported() -> None:
    census = take_census({"model": {"blocks": list(range(11)), "w": torch.zeros(1)}}, Limits(max_items=10))
    assert census.cut == [("model['blocks']", 11)]
    assert [record.path for record in census.records] == ["model['w']"]


def test_excluded_classes_modules_and_weak_references_are_not_entered() -> None:
    class VllmConfig:
        def __init__(self) -> None:
            self.w = torch.zeros(1)

    class Plain:
        def __init__(self) -> None:
            self.w = torch.zeros(1)

    held = Plain()
    root = {"config": VllmConfig(), "weak": weakref.ref(held), "module": types, "plain": held}
    assert paths(root) == {"model['plain'].w"}
    assert paths(root, excluded_modules=(Plain.__module__,)) == set()


class Hostile(nn.Module):
    """Raises whenever its code is run."""

    @property
    def secret(self) -> torch.Tensor:
        raise AssertionError("a property was read")

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"__getattr__({name!r}) was called")


class HostileDict(dict[str, Any]):
    def items(self) -> Any:
        raise AssertionError("items() was called")

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("__iter__ was called")

    def __len__(self) -> int:
        raise AssertionError("__len__ was called")


class HostileTensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("__torch_function__ was called")


def test_no_code_of_the_host_runs() -> None:
    model = Hostile()
    model.__dict__["items"] = HostileDict(w=torch.zeros(1))
    model.__dict__["tensor"] = torch.zeros(1).as_subclass(HostileTensor)
    assert paths(model) == {"model.items['w']", "model.tensor"}


def test_roots_are_walked_in_turn_and_the_first_gives_the_names() -> None:
    model = nn.Linear(2, 2, bias=False)
    runner = types.SimpleNamespace(model=model, buffer=torch.zeros(1))
    census = take_census({"model": model, "runner": runner})
    assert [record.path for record in census.records] == ["model.weight", "runner.buffer"]


def test_the_classes_on_the_way_are_known() -> None:
    model: Any = nn.Module()
    model.method = Method()
    model.other = types.SimpleNamespace(nothing=1)
    assert list(take_census({"model": model}).owners) == [Method, nn.Module]


def test_parents_lead_back_to_the_root() -> None:
    model: Any = nn.Module()
    model.method = Method()
    census: Census = take_census({"model": model})
    assert census.parents[id(model.method)] == (model, "method")


@pytest.mark.parametrize("frozen", [False, True])
def test_many_tensors_are_fast(frozen: bool) -> None:
    model: Any = nn.Module()
    model.tables = [{i: torch.empty(1) for i in range(100)} for _ in range(200)]
    if frozen:
        gc.freeze()
    try:
        start = time.process_time()
        census = take_census({"model": model})
        elapsed = time.process_time() - start
    finally:
        gc.unfreeze()
    assert len(census.records) == 20_000
    assert elapsed < 2.0  # measured 0.1 s; the budget is 2 s for 110,000
