"""Classes over modules: order of bases, what is a module, who is below whom."""

from __future__ import annotations

from pathlib import Path

from executed import index_of

from rebindlint.index import Index
from rebindlint.index.classes import ClassInfo
from rebindlint.index.tree import External


def class_named(index: Index, module: str, name: str) -> ClassInfo:
    home = index.module(module)
    assert home is not None
    found = index.resolve(home, name)
    assert isinstance(found, ClassInfo)
    return found


def names(classes: tuple[ClassInfo, ...] | list[ClassInfo]) -> list[str]:
    return [info.name for info in classes]


def test_a_diamond_over_two_modules_has_pythons_order(tmp_path: Path) -> None:
    index = index_of(
        tmp_path,
        base="class Root:\n    def act(self): pass\nclass Left(Root): pass\nclass Right(Root):\n    def act(self): pass\n",
        leaf="import base\nfrom base import Left\nclass Leaf(Left, base.Right): pass\n",
    )
    leaf = class_named(index, "leaf", "Leaf")
    assert names(index.mro(leaf)) == ["Leaf", "Left", "Right", "Root"]
    method = index.method(leaf, "act")
    assert method is not None
    assert method.qualified == "Right.act"
    assert index.method(leaf, "missing") is None


def test_modules_are_told_by_their_outermost_base(tmp_path: Path) -> None:
    index = index_of(
        tmp_path,
        m="""
        import torch
        import torch.nn as nn
        from torch.nn import Module
        class A(nn.Module): pass
        class B(A): pass
        class C(Module): pass
        class D(torch.nn.Linear): pass
        class Plain: pass
        class Weight(nn.Parameter): pass
        class Generic(A[int]): pass
        """,
    )
    modules = {
        name
        for name in ["A", "B", "C", "D", "Plain", "Weight", "Generic"]
        if index.is_module(class_named(index, "m", name))
    }
    assert modules == {"A", "B", "C", "D", "Generic"}
    assert index.is_parameter_class(class_named(index, "m", "Weight"))
    assert not index.is_parameter_class(class_named(index, "m", "A"))
    assert "torch.nn.Module" in index.externals(class_named(index, "m", "B"))


def test_subscripted_bases_are_followed(tmp_path: Path) -> None:
    index = index_of(tmp_path, m="from torch import nn\nclass Base(nn.Module): pass\nclass Leaf(Base[int]): pass\n")
    leaf = class_named(index, "m", "Leaf")
    assert names(index.mro(leaf)) == ["Leaf", "Base"]
    assert index.is_module(leaf)


def test_subclasses_are_found_in_modules_that_nobody_parsed(tmp_path: Path) -> None:
    index = index_of(
        tmp_path,
        base="class Experts: pass\n",
        one="from base import Experts\nclass One(Experts): pass\nclass Deeper(One): pass\n",
        two="import base\nclass Two(\n    base.Experts,\n    metaclass=type,\n): pass\n",
        other="class Experts: pass\nclass Stranger(Experts): pass\n",
        renamed="from base import Experts as E\nclass Unrelated: pass\n",
    )
    experts = class_named(index, "base", "Experts")
    assert set(names(index.subclasses(experts))) == {"Experts", "One", "Deeper", "Two"}
    assert index.is_subclass(class_named(index, "one", "Deeper"), experts)


def test_classes_that_are_their_own_bases_end(tmp_path: Path) -> None:
    index = index_of(tmp_path, m="class A(B): pass\nclass B(A): pass\nclass Selfish(Selfish): pass\n")
    for name in ("A", "B", "Selfish"):
        info = class_named(index, "m", name)
        assert index.mro(info)[0] is info
        assert index.method(info, "act") is None
        assert info in index.subclasses(info)


def test_members_of_a_class_body(tmp_path: Path) -> None:
    index = index_of(
        tmp_path,
        m="""
        from functools import lru_cache
        class A:
            kind: str = "a"
            size: int
            names = ("x", "y")
            @property
            def value(self): return 1
            @value.setter
            def value(self, new): self.kept = new
            @staticmethod
            def make(x): return x
            @classmethod
            def build(cls): return cls()
            @lru_cache(maxsize=None)
            def once(self): return 1
            def __init__(self, x):
                self.x: int = x
                if x:
                    self.y, self.z = x, x
                self.register_buffer("b", None)
        """,
    )
    info = class_named(index, "m", "A")
    assert set(info.attributes) == {"kind", "names"}
    assert set(info.annotations) == {"kind", "size"}
    assert info.methods["value"].is_property
    assert set(info.setters) == {"value"}
    assert info.methods["make"].is_static
    assert info.methods["build"].is_classmethod
    assert info.methods["once"].is_cached
    assert {name: writes[0].conditional for name, writes in info.writes.items()} == {
        "x": False,
        "y": True,
        "z": True,
        "b": False,
    }


def test_a_dotted_name_that_leaves_the_tree_is_external(tmp_path: Path) -> None:
    index = index_of(tmp_path, m="import torch\nclass A(torch.nn.Module): pass\n")
    module = index.module("m")
    assert module is not None
    found = index.resolve_expression(module, class_named(index, "m", "A").node.bases[0])
    assert isinstance(found, External)
    assert found == "torch.nn.Module"
