"""Calls are entered, wherever the callee comes from."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from executed import brief, facts, in_method, in_module, index_of

from rebindlint.config import Config
from rebindlint.execution import execute_hooks

TOP = """
import abc
from functools import cache, cached_property, lru_cache, partial, wraps


def pack(t):
    return t * 2


def same(t):
    return t


def store(layer, name, value):
    setattr(layer, name, value)


def apply_to(layer, name, fn):
    setattr(layer, name, fn(getattr(layer, "weight")))


def spread(*args, **kwargs):
    store(*args, **kwargs)


def choose(a, b=None, *, c=3):
    return a if b is None else b


def several(t):
    yield t * 2
    yield t * 3


@cache
def remembered():
    return torch.zeros(4)


def traced(fn):
    @wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)

    return wrapper


@traced
def decorated(layer):
    layer.w = layer.weight * 2


class Base:
    def transform(self, t):
        return t * 2

    def put(self, layer):
        layer.w = self.transform(layer.weight)


class Keeping(Base):
    def transform(self, t):
        return t

    def put_from_base(self, layer):
        layer.w = super().transform(layer.weight)


class Kernel:
    def __init__(self, weight):
        self.workspace = torch.empty(16)

    @classmethod
    def build(cls, weight):
        return cls(weight)

    @staticmethod
    def fill(layer):
        layer.w = layer.weight * 2

    def __call__(self, layer):
        layer.w = layer.weight * 2


class Holder:
    @property
    def target(self):
        return self.kept

    @target.setter
    def target(self, value):
        self.kept = value

    @cached_property
    def once(self):
        return torch.zeros(4)
"""
REBOUND = {"address attribute layer.w"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("layer.w = pack(layer.weight)", REBOUND),
        ("layer.w = same(layer.weight)", set()),
        ("store(layer, 'w', layer.weight * 2)", REBOUND),
        ("store(layer, value=layer.weight * 2, name='w')", REBOUND),
        ("spread(layer, 'w', value=layer.weight * 2)", REBOUND),
        ("store(*[layer, 'w'], **{'value': layer.weight * 2})", REBOUND),
        ("apply_to(layer, 'w', pack)", REBOUND),
        ("apply_to(layer, 'w', same)", set()),
        ("apply_to(layer, 'w', lambda t: t * 2)", REBOUND),
        ("apply_to(layer, 'w', Base().transform)", REBOUND),
        ("apply_to(layer, 'w', Keeping().transform)", set()),
        ("layer.w = choose(layer.weight)", set()),
        ("layer.w = choose(layer.weight, layer.weight * 2)", REBOUND),
        ("decorated(layer)", REBOUND),
        ("Base().put(layer)", REBOUND),
        ("Keeping().put(layer)", set()),
        ("Keeping().put_from_base(layer)", REBOUND),
        ("Kernel.fill(layer)", REBOUND),
        ("Kernel(layer.weight)(layer)", REBOUND),
        ("layer.w, _ = several(layer.weight)", REBOUND),
        ("for layer.w in several(layer.weight):\n    pass", REBOUND),
        ("layer.w = remembered()", set()),
        ("partial(store, layer, 'w')(layer.weight * 2)", REBOUND),
        ("functools.partial(store, name='w', value=layer.weight * 2)(layer)", REBOUND),
        ("def inner():\n    layer.w = layer.weight * 2\ninner()", REBOUND),
        ("new = layer.weight * 2\ndef inner():\n    return new\nlayer.w = inner()", REBOUND),
        ("new = None\ndef inner():\n    nonlocal new\n    new = layer.weight * 2\ninner()\nlayer.w = new", REBOUND),
        ("(lambda: setattr(layer, 'w', layer.weight * 2))()", REBOUND),
        ("def never():\n    layer.w = layer.weight * 2", set()),
        ("list(map(lambda n: setattr(layer, n, layer.weight * 2), ('w',)))", REBOUND),
        ("fn = pack if layer.config.fast else same\nlayer.w = fn(layer.weight)", REBOUND),
        ("{'a': pack}['a'](layer.weight)\nlayer.w = {'a': pack}['a'](layer.weight)", REBOUND),
    ],
)  # fmt: skip
def test_a_callee_is_entered(body: str, expected: set[str]) -> None:
    assert brief(facts(hooks=in_method(body, top=TOP))) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("layer.holder = Holder()\nlayer.holder.target = layer.weight * 2", {"lifetime holder layer.holder"}),
        ("layer.holder.target = layer.weight * 2", {"address attribute layer.holder.kept"}),
        ("layer.holder.target = layer.weight", set()),
        ("layer.w = layer.holder.once", set()),
    ],
)
def test_properties(body: str, expected: set[str]) -> None:
    text = in_method("layer: Layer = layer\n" + body, top=TOP, reads="layer.w, layer.holder.target")
    text = text.replace("layer: nn.Module", "layer: Layer").replace("layer: Layer = layer\n", "pass\n")
    text += "\nclass Layer(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.holder = Holder()\n"
    assert brief(facts(hooks=text)) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("self.kernel = Kernel(self.weight)", {"lifetime holder self.kernel"}),
        ("self.kernel = Kernel.build(self.weight)", {"lifetime holder self.kernel"}),
        ("if self.kernel is None:\n    self.kernel = Kernel(self.weight)", set()),
        ("self.kernel = partial(pack, self.weight * 2)", {"lifetime holder self.kernel"}),
        ("self.kernel = partial(pack, self.weight)", set()),
        ("new = self.weight * 2\nself.kernel = lambda x: x @ new", {"lifetime holder self.kernel"}),
        ("weight = self.weight\nself.kernel = lambda x: x @ weight", set()),
        ("self.kernel = Base()", set()),
    ],
)
def test_a_holder_that_is_built_again(body: str, expected: set[str]) -> None:
    text = in_module(
        body, top=TOP, init="self.kernel = None", reads="self.kernel.workspace, self.kernel.weight, self.kernel.scale"
    )
    assert brief(facts(hooks=text)) == expected


def test_a_holder_of_registered_parameters_alone_is_silent() -> None:
    top = """
    class Config:
        def __init__(self, weight, scale):
            self.weight = weight
            self.scale = scale
    """
    owning = in_method(
        "layer.config = Config(layer.weight, layer.scale * 2)",
        top=top,
        reads="layer.config.weight + layer.config.scale",
    )
    assert brief(facts(hooks=owning)) == {"lifetime holder layer.config"}
    borrowing = owning.replace("layer.scale * 2", "layer.scale")
    assert brief(facts(hooks=borrowing)) == set()


def test_calls_lead_through_modules_and_the_chain_says_how() -> None:
    found = facts(
        **{
            "pkg/__init__": "",
            "pkg/tool/__init__": "from .repack import repack",
            "pkg/tool/repack": """
                from . import deep as d
                def repack(layer, name):
                    d.bind(layer, name)
                """,
            "pkg/tool/deep": """
                def bind(layer, name):
                    setattr(layer, name, layer.weight * 2)
                """,
            "pkg/method": in_method("from pkg.tool import repack as again\nagain(layer, 'w')"),
        }
    )
    (fact,) = found
    assert brief(found) == REBOUND
    assert (fact.statement.filename, fact.statement.start.row) == ("pkg/tool/deep.py", 3)
    assert (fact.module, fact.function) == ("pkg.tool.deep", "bind")
    assert (fact.hook, fact.hook_place.filename) == ("Method.process_weights_after_loading", "pkg/method.py")
    assert [frame.filename for frame in fact.chain][:2] == ["pkg/method.py", "pkg/tool/repack.py"]


@pytest.mark.xfail(strict=True, reason="overrides below a receiver known only up to its base are not entered")
def test_every_class_below_an_annotated_bound_is_entered() -> None:
    top = """
    class Experts:
        def prepare(self, layer):
            raise NotImplementedError
    class Quiet(Experts):
        def prepare(self, layer):
            layer.flag = True
    class Loud(Experts):
        def prepare(self, layer):
            layer.w = layer.weight * 2
    """
    text = (
        in_method("self.make(layer)", top=top)
        + "    experts: Experts\n    def make(self, layer):\n        self.experts.prepare(layer)\n"
    )
    assert brief(facts(hooks=text)) == REBOUND


def test_a_hook_inherited_from_a_base_is_executed_once() -> None:
    body = "super().process_weights_after_loading(layer)\nlayer.v = layer.weight * 3"
    text = (
        in_method("layer.w = layer.weight * 2")
        + "\nclass Leaf(Method):\n    def process_weights_after_loading(self, layer):\n"
    )
    text += (
        "".join(f"        {line}\n" for line in body.splitlines())
        + "    def apply(self, layer):\n        return layer.v\n"
    )
    assert brief(facts(hooks=text)) == {"address attribute layer.w", "address attribute layer.v"}


def test_a_super_chain_over_three_classes_is_entered() -> None:
    text = in_method("self.fill(layer)") + (
        "class A:\n    def fill(self, layer):\n        layer.w = layer.weight * 2\n"
        "class B(A):\n    def fill(self, layer):\n        super().fill(layer)\n"
        "class C(B, Method):\n    def process_weights_after_loading(self, layer):\n        super().fill(layer)\n"
    )
    assert brief(facts(hooks=text)) >= REBOUND


def test_the_linted_code_is_never_imported() -> None:
    with tempfile.TemporaryDirectory() as folder:
        mark = Path(folder) / "mark"
        effect = f"open({str(mark)!r}, 'w').close()\n"
        package = {"pkg/__init__": effect, "pkg/tool": effect + "def pack(t):\n    return t * 2\n"}
        index = index_of(
            Path(folder), hooks=effect + in_method("from pkg.tool import pack\nlayer.w = pack(layer.weight)"), **package
        )
        assert brief(execute_hooks(index, Config(), jobs=1).facts) == REBOUND
        assert not mark.exists()
