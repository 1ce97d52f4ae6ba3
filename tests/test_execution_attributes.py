"""Every way to bind, read and delete an attribute, slot, parameter or storage."""

from __future__ import annotations

from typing import Any

import pytest
from executed import brief, facts, in_method, in_module


def miss(*values: Any, reason: str) -> Any:
    """A case that the engine does not get right yet."""
    return pytest.param(*values, marks=pytest.mark.xfail(strict=True, reason=reason))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("layer.w = layer.weight * 2", "address attribute layer.w"),
        ("layer.w: torch.Tensor = layer.weight * 2", "address attribute layer.w"),
        ("layer.v = layer.w = layer.weight * 2", "address attribute layer.w"),
        ("layer.w, x = layer.weight * 2, 1", "address attribute layer.w"),
        ("(x, (layer.w, y)) = 1, (layer.weight * 2, 3)", "address attribute layer.w"),
        ("x, *rest = layer.weight.clone(), 1\nlayer.w = x", "address attribute layer.w"),
        ("setattr(layer, 'w', layer.weight * 2)", "address attribute layer.w"),
        ("object.__setattr__(layer, 'w', layer.weight * 2)", "address attribute layer.w"),
        ("layer.__dict__['w'] = layer.weight * 2", "address attribute layer.w"),
        ("layer.w = (new := layer.weight * 2)", "address attribute layer.w"),
        ("if (new := layer.weight * 2) is not None:\n    layer.w = new", "address attribute layer.w"),
        ("layer.weight = Parameter(layer.weight * 2)", "address parameter layer.weight"),
        ("layer.w = Parameter(layer.weight * 2, requires_grad=False)", "address parameter layer.w"),
        ("layer.register_parameter('w', Parameter(layer.weight * 2))", "address parameter layer.w"),
        ("layer.register_buffer('w', layer.weight * 2)", "address parameter layer.w"),
        ("setattr(layer, 'w', Parameter(layer.weight * 2))", "address parameter layer.w"),
        ("layer.weight.data = layer.weight * 2", "address data layer.weight"),
        ("p = layer.weight\np.data = p * 2", "address data layer.weight"),
        ("getattr(layer, 'weight').data = layer.weight * 2", "address data layer.weight"),
        ("layer.weight.set_(layer.weight * 2)", "address data layer.weight"),
        ("torch.utils.swap_tensors(layer.weight, Parameter(layer.weight * 2))", "address data layer.weight"),
        ("layer._parameters['weight'] = Parameter(layer.weight * 2)", "address slot layer.weight"),
        ("layer.cache['a'] = layer.weight * 2", "address slot layer.cache['a']"),
        ("layer.items = [layer.weight * 2]", "address attribute layer.items"),
        ("layer.pair = (layer.weight * 2, layer.scale + 1)", "address attribute layer.pair"),
        ("layer.items = {'a': layer.weight * 2}", "address attribute layer.items"),
    ],
)  # fmt: skip
def test_bindings_of_new_tensors(body: str, expected: str) -> None:
    found = facts(hooks=in_method(body, reads="layer.w, layer.cache, layer.items, layer.pair"))
    assert expected in brief(found)


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        ("self.cache = {}", {"address slot self.cache['a']"}),
        ("self.cache = dict()", {"address slot self.cache['a']"}),
        ("self.cache = torch.zeros(4, 4)", set()),  # writes elements of a tensor
        ("self.register_buffer('cache', torch.zeros(4, 4))", set()),
        miss(
            "self.cache = [None, None]",
            {"address slot self.cache['a']"},
            reason="reported as a refresh that is skipped",
        ),
    ],
)
def test_a_subscript_is_a_slot_or_an_element(init: str, expected: set[str]) -> None:
    text = in_module("self.cache['a'] = self.weight * 2", init=init, reads="self.cache")
    assert brief(facts(hooks=text)) == expected


@pytest.mark.parametrize(
    "body",
    [
        "w = layer.weight * 2",
        "layer.w = layer.weight",
        "layer.w = layer.weight.data",
        "layer.weight = Parameter(layer.weight.data)",
        "layer.weight = Parameter(layer.weight, requires_grad=False)",
        "layer.weight.data = layer.weight.data.view(-1)",
        "layer.weight.data = layer.weight.data",
        "layer.weight.copy_(layer.scale)",
        "layer.weight.data.copy_(layer.scale)",
        "layer.weight[0] = layer.scale",
        "layer.weight[:, 1:].copy_(layer.scale)",
        "layer.flag = True",
        "layer.w = None",
        "layer.w = layer.weight.shape",
        "layer.w = layer.weight.dtype",
        "layer.w = str(layer.weight.dtype)",
        "layer.w = layer.weight.shape[0] * 2",
        "layer.w = (layer.weight, 1, None)",
        "layer.w = {'a': layer.weight}",
        "layer.weight.note = 'packed'",
        "setattr(layer.weight, 'w', 1)",
        "layer.w = lambda x: x",
        "def fn(x):\n    return x\nlayer.w = fn",
        "import copy\nother = copy.copy(layer)\nother.w = layer.weight * 2",
        "import copy\nother = copy.deepcopy(layer)\nother.w = layer.weight * 2",
        "import copy\np = copy.copy(layer.weight)\np.data = p * 2",
        "layer.w = layer.weight * 2\ndel layer.w",
        "layer.w = layer.weight * 2\nlayer.w = None",
        "layer.w = layer.weight.cpu()",
    ],
)
def test_what_keeps_every_captured_address_is_silent(body: str) -> None:
    assert facts(hooks=in_method(body)) == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("layer.w = getattr(layer, 'weight') * 2", {"address attribute layer.w"}),
        ("layer.w = getattr(layer, 'absent', layer.weight)", set()),
        ("if hasattr(layer, 'weight'):\n    layer.w = layer.weight * 2", {"address attribute layer.w"}),
        ("name = 'w'\nif not hasattr(layer, name):\n    setattr(layer, name, layer.weight)", set()),
        (
            "layer.w = torch.zeros(4)\nif layer.w is None:\n    layer.v = layer.weight * 2",
            {"address attribute layer.w"},
        ),
        ("layer.flag = 1\nif layer.flag == 2:\n    layer.w = layer.weight * 2", set()),
    ],
)
def test_reading(body: str, expected: set[str]) -> None:
    assert brief(facts(hooks=in_method(body, reads="layer.w, layer.v"))) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("self.weight *= 2", set()),  # the next load overwrites it first
        ("self.count += 1", set()),
        ("self.w += 1", {"freshness copy self.w"}),  # no load overwrites it
    ],
)
def test_augmented_assignment_writes_in_place(body: str, expected: set[str]) -> None:
    found = facts(hooks=in_module(body, init="self.count = 0\nself.w = torch.zeros(4)"))
    assert brief(found) == expected


@pytest.mark.parametrize(
    "body",
    [
        "self.items.append(self.weight * 2)",
        "self.items += [self.weight * 2]",
    ],
)
def test_a_list_that_grows_keeps_a_stale_tensor(body: str) -> None:
    found = facts(hooks=in_module(body, init="self.items = []", reads="self.items[0]"))
    assert {f.hazard for f in found} == {"freshness"}


@pytest.mark.parametrize(
    ("body", "init", "expected"),
    [
        ("self.w = self.weight * 2\nself.v = self.w\nself.v = None", "pass", {"address attribute self.w"}),
        ("if self.w is None:\n    self.w = self.weight * 2\nelse:\n    self.w = None", "self.w = None", {"lifetime release self.w"}),
        ("if self.w is None:\n    self.w = self.weight * 2\nelse:\n    del self.w", "self.w = None", {"lifetime release self.w"}),
        ("if self.w is None:\n    self.w = self.weight * 2\nelse:\n    delattr(self, 'w')", "self.w = None", {"lifetime release self.w"}),
        ("if self.w is None:\n    self.w = self.weight * 2\nelse:\n    self.w.copy_(self.weight * 2)", "self.w = None", set()),
    ],
)  # fmt: skip
def test_released_tensors(body: str, init: str, expected: set[str]) -> None:
    assert brief(facts(hooks=in_module(body, init=init))) == expected


GLOBALS = """
CACHE = {}
TABLE = None


def workspace():
    global TABLE
    TABLE = torch.zeros(16)
    return TABLE


def lazily(name):
    if name not in CACHE:
        CACHE[name] = torch.zeros(16)
    return CACHE[name]
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("layer.w = lazily('a')", set()),
        ("layer.w = workspace()", {"address attribute layer.w"}),
        miss("workspace()", {"address attribute TABLE"}, reason="a global bound to a tensor is not compared"),
        ("CACHE['a'] = layer.weight * 2", {"address slot CACHE['a']"}),
        ("if 'a' not in CACHE:\n    CACHE['a'] = layer.weight * 2", {"freshness none CACHE['a']"}),
    ],
)
def test_module_globals_are_roots(body: str, expected: set[str]) -> None:
    assert brief(facts(hooks=in_method(body, top=GLOBALS, reads="layer.w, TABLE, CACHE"))) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("weight_global_scale", {"error"}),  # no file of the method mentions it: another method's layers have it
        ("scale", {"scale"}),  # its own layers have it, whatever the conversion does for others
        ("bias", {"bias", "error"}),  # the layer's own affair
    ],
)
def test_a_weight_that_the_method_never_mentions_is_not_on_its_layers(name: str, expected: set[str]) -> None:
    conversion = f"""
    import torch

    def convert(layer):
        if hasattr(layer, "{name}"):
            layer.{name} = torch.nn.Parameter(layer.{name} * 2)
        else:
            layer.error = torch.zeros(4)
    """
    method = """
    import torch
    from torch.nn import Parameter
    from vllm.conversion import convert

    class Method:
        def create_weights(self, layer):
            layer.register_parameter("weight", Parameter(torch.empty(4), requires_grad=False))
            layer.register_parameter("scale", Parameter(torch.empty(4), requires_grad=False))

        def process_weights_after_loading(self, layer):
            convert(layer)

        def apply(self, layer, x):
            return run(layer, x * layer.error, layer.scale, layer.bias)
    """
    other = "class Other:\n    def apply(self, layer, x):\n        return x * layer.weight_global_scale\n"
    files = {"__init__": "", "conversion": conversion, "method": method, "other": other}
    found = facts(**{f"vllm/{name}.py": text for name, text in files.items()})
    assert {fact.cell.name for fact in found} == expected
