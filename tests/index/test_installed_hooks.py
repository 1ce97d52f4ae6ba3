"""Functions that are put in the place of a hook, and hooks of mixins: which roots the index makes of them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from executed import index_of

from rebindlint.index import Index, find_hooks

FUNCTIONS = """
import functools
import types

def plain(layer):
    layer.w = 1

def with_scale(scale, layer):
    layer.w = scale

def method_like(self, layer):
    self.w = 1

def factory(original):
    def made(layer):
        layer.w = 1
    return made

class Backend:
    def pack(self, layer):
        layer.w = 1

    @staticmethod
    def pack_static(layer):
        layer.w = 1
"""


def installed(index: Index) -> list[tuple[str, str | None]]:
    return [(h.function.name, h.receiver.name if h.receiver else None) for h in find_hooks(index)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain", ("plain", None)),
        ("functools.partial(with_scale, 2)", ("with_scale", None)),
        ("types.MethodType(method_like, backend)", ("method_like", "Backend")),
        ("method_like.__get__(backend)", ("method_like", "Backend")),
        ("types.MethodType(method_like, other)", ("method_like", None)),
        ("factory(method.process_weights_after_loading)", ("made", None)),
        ("functools.wraps(method.process_weights_after_loading)(plain)", ("plain", None)),
        ("lambda layer: plain(layer)", ("<lambda>", None)),
        ("local", ("local", None)),
        ("renamed", ("with_scale", None)),
    ],
)
@pytest.mark.parametrize(
    "statement",
    [
        "method.process_weights_after_loading = {}",
        "other.inner.process_weights_after_loading: object = {}",
        "setattr(method, 'process_weights_after_loading', {})",
    ],
)
def test_what_is_installed_is_a_root(
    tmp_path: Path, statement: str, value: str, expected: tuple[str, str | None]
) -> None:
    body = f"""
def install(method, other, backend: Backend):
    renamed = functools.partial(with_scale, 3)
    def local(layer):
        layer.w = 2
    {statement.format(value)}
"""
    assert installed(index_of(tmp_path, a=FUNCTIONS + body)) == [expected]


@pytest.mark.parametrize(
    "value",
    ["None", "given", "method.process_weights_after_loading", "unknown", "lambda layer: None", "torch.nn.Identity()"],
)
def test_what_is_no_function_of_the_tree_is_none(tmp_path: Path, value: str) -> None:
    body = f"\ndef install(method, given):\n    method.process_weights_after_loading = {value}\n"
    assert installed(index_of(tmp_path, a=FUNCTIONS + "def given(layer):\n    layer.w = 1\n" + body)) == []


def test_on_a_class_the_function_becomes_a_method(tmp_path: Path) -> None:
    text = FUNCTIONS + "\nBackend.process_weights_after_loading = method_like\n"
    assert installed(index_of(tmp_path, a=text)) == [("method_like", "Backend")]


@pytest.mark.parametrize(("name", "receiver"), [("pack", "Own"), ("pack_static", None)])
def test_a_method_of_the_object_around_it(tmp_path: Path, name: str, receiver: str | None) -> None:
    body = f"""
class Own(Backend):
    def __init__(self, method):
        method.process_weights_after_loading = self.{name}
"""
    assert installed(index_of(tmp_path, a=FUNCTIONS + body)) == [(name, receiver)]


def test_a_function_that_uses_the_object_around_it_runs_on_that(tmp_path: Path) -> None:
    text = """
class Own:
    def __init__(self, method, other):
        def on_self(layer):
            self.w = layer.weight
        def on_layer(layer):
            layer.w = 1
        method.process_weights_after_loading = on_self
        other.process_weights_after_loading = on_layer
"""
    index = index_of(tmp_path, a=text)
    assert installed(index) == [("on_self", "Own"), ("on_layer", None)]
    first = find_hooks(index)[0]
    assert first.function.positional == ("self", "layer")
    assert ast.unparse(first.function.node).startswith("def on_self(self, layer):")


def test_further_names_of_hooks_are_installed_as_well(tmp_path: Path) -> None:
    index = index_of(tmp_path, a=FUNCTIONS + "\ndef install(method):\n    method.after_load = plain\n")
    assert installed(index) == []
    assert [h.name for h in find_hooks(index, ["after_load"])] == ["plain"]


MIXIN = """
class Mixin:
    def process_weights_after_loading(self, layer):
        layer.w = {call}

class First:
    def compute(self, layer): return layer.a

class Second:
    def compute(self, layer): return layer.b
"""


@pytest.mark.parametrize("call", ["super().compute(layer)", "self.compute(layer)", "self.through(layer)"])
def test_a_mixin_is_executed_with_what_completes_it(tmp_path: Path, call: str) -> None:
    text = (
        MIXIN.format(call=call)
        + """
class A(Mixin, First): pass
class AlsoA(Mixin, First): pass
class B(Mixin, Second): pass
class C(Mixin): pass
class D(Mixin, Second):
    def process_weights_after_loading(self, layer):
        layer.w = 1
"""
    ).replace(
        "layer.w = self.through(layer)",
        "layer.w = self.through(layer)\n    def through(self, layer): return self.compute(layer)",
    )
    names = [h.receiver.name for h in find_hooks(index_of(tmp_path, a=text)) if h.receiver]
    assert sorted(names) == ["A", "B", "D", "Mixin"]


@pytest.mark.parametrize("call", ["self.own(layer)", "self.kept(layer)", "layer.compute()"])
def test_a_class_that_lacks_nothing_is_executed_alone(tmp_path: Path, call: str) -> None:
    own = "\n    def own(self, layer): return 1\n    def __init__(self, kept): self.kept = kept\n"
    text = MIXIN.format(call=call + own) + "\nclass A(Mixin, First):\n    def kept(self, layer): return 2\n"
    names = [h.receiver.name for h in find_hooks(index_of(tmp_path, a=text)) if h.receiver]
    assert names == ["Mixin"]
