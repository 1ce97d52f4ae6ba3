"""Which reload protocol saves a cell, and which does not."""

from __future__ import annotations

import pytest
from engine import brief, facts, in_method, in_module


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # registered before the hook or in it: layerwise reloading copies back by name
        ("layer.weight = Parameter(layer.weight * 2)", {"address parameter layer.weight direct"}),
        ("layer.weight.data = layer.weight * 2", {"address data layer.weight direct"}),
        ("layer.register_buffer('w', layer.weight * 2)", {"address parameter layer.w direct"}),
        ("layer.w = Parameter(layer.weight * 2)", {"address parameter layer.w direct"}),
        # nothing saves these
        ("layer.w = layer.weight * 2", {"address attribute layer.w direct+layerwise"}),
        ("self.w = layer.weight * 2", {"address attribute self.w direct+layerwise"}),
        ("layer.pair = (layer.weight * 2,)", {"address attribute layer.pair direct+layerwise"}),
        ("self.w = layer.weight", {"address attribute self.w layerwise"}),
    ],
)
def test_a_quantisation_methods_hook(body: str, expected: set[str]) -> None:
    found = brief(facts(hooks=in_method(body, reads="layer.w, layer.pair, self.w")), protocols=True)
    if body == "self.w = layer.weight":
        # direct reloading writes into the very tensor; layerwise leaves the method holding one that nobody keeps
        assert {line.rsplit(" ", 1)[1] for line in found} <= {"layerwise"}
    else:
        assert found == expected


def test_a_layers_own_hook_works_on_live_tensors_under_layerwise_too() -> None:
    body = "self.weight = Parameter(self.weight * 2)\nself.w = self.weight + 1"
    assert brief(facts(hooks=in_module(body)), protocols=True) == {
        "address parameter self.weight direct+layerwise",
        "address attribute self.w direct+layerwise",
    }


def test_what_loading_itself_calls_works_on_live_tensors() -> None:
    text = in_module(
        "pass",
        members="def load_weights(self, weights):\n    self.finalize_all()\n\ndef finalize_all(self):\n    self.w = self.weight * 2\n",
    )
    assert brief(facts(hooks=text), protocols=True) == {"address attribute self.w direct+layerwise"}


def test_a_value_that_no_reload_refreshes_in_place_is_stale_under_layerwise_only() -> None:
    body = """
    if not hasattr(self, "kept"):
        self.kept = layer.weight
    """
    found = brief(facts(hooks=in_method(body, reads="self.kept")), protocols=True)
    assert not any("direct" in line.split()[-1] for line in found)


def test_a_transpose_that_runs_again_on_what_it_gave_is_reported() -> None:
    body = "self.weight.copy_(self.weight * 2)"
    assert facts(hooks=in_module(body)) == []  # the next load overwrites it first
    folded = "self.scale.copy_(self.scale * 2)"
    found = facts(hooks=in_module(folded, init="self.scale = torch.ones(4)", reads="self.scale"))
    assert all(f.hazard == "freshness" for f in found)


@pytest.mark.parametrize(
    ("first", "second", "silent"),
    [
        ("layer.weight.copy_(layer.weight.t())", "", False),
        ("layer.weight.copy_(layer.weight.t().clone())", "", True),
        ("layer.weight.copy_(layer.weight)", "", True),
    ],
)
def test_a_copy_out_of_what_it_overwrites(first: str, second: str, silent: bool) -> None:
    found = facts(hooks=in_method(first + second))
    assert bool([f for f in found if f.overlapping]) is not silent


def test_lost_source() -> None:
    body = """
    if layer.packed is None:
        layer.packed = layer.weight * 2
        layer.weight = None
    """
    found = facts(hooks=in_method(body, reads="layer.packed").replace("layer.weight, layer.scale, ", ""))
    for fact in found:
        assert fact.cell.name in ("packed", "weight")


HELPERS = {
    "rebinds": """
        from torch.nn import Parameter
        def replace_parameter(layer, name, new):
            delattr(layer, name)
            layer.register_parameter(name, Parameter(new, requires_grad=False))
        """,
    "prefer_copy": """
        from torch.nn import Parameter
        def replace_parameter(layer, name, new, prefer_copy=False):
            old = getattr(layer, name, None)
            if prefer_copy and old is not None and old.shape == new.shape and old.dtype == new.dtype:
                old.data.copy_(new)
                return
            if old is not None:
                delattr(layer, name)
            layer.register_parameter(name, Parameter(new, requires_grad=False))
        """,
    "copies": """
        from torch.nn import Parameter
        def replace_parameter(layer, name, new):
            old = getattr(layer, name, None)
            if old is None:
                layer.register_parameter(name, Parameter(new, requires_grad=False))
            elif old.shape == new.shape and old.stride() == new.stride() and old.dtype == new.dtype:
                old.data.copy_(new)
            else:
                old.data = new
        """,
}


@pytest.mark.parametrize(
    ("helper", "call", "rebinds", "unsupported"),
    [
        ("rebinds", "replace_parameter(layer, 'w', layer.weight * 2)", True, False),
        ("prefer_copy", "replace_parameter(layer, 'w', layer.weight * 2)", True, False),
        ("prefer_copy", "replace_parameter(layer, 'w', layer.weight * 2, prefer_copy=True)", False, False),
        ("copies", "replace_parameter(layer, 'w', layer.weight * 2)", False, False),
        ("rebinds", "replace_parameter(layer, 'w', layer.weight * 2, prefer_copy=True)", True, True),
        ("copies", "replace_parameter(layer, 'w', layer.weight * 2, prefer_copy=True)", False, True),
    ],
)
def test_a_replace_helper_does_what_its_source_says(helper: str, call: str, rebinds: bool, unsupported: bool) -> None:
    found = facts(tool=HELPERS[helper], hooks=in_method(f"from tool import replace_parameter\n{call}"))
    assert bool([f for f in found if f.hazard == "address"]) is (rebinds and not unsupported)
    assert any(f.prefer_copy_unsupported for f in found) is unsupported
    for fact in found:
        assert fact.binding == "replace"
        assert fact.helper is not None
        assert fact.statement.filename == "hooks.py"


# ---- what torch does to memory


@pytest.mark.parametrize(
    ("value", "allocates"),
    [
        ("layer.weight.contiguous()", False),
        ("layer.weight.transpose(0, 1)", False),
        ("layer.weight.t()", False),
        ("layer.weight.transpose(0, 1).contiguous()", True),
        ("layer.weight.t().contiguous()", True),
        ("layer.weight.t().t().contiguous()", False),
        ("layer.weight.view(-1)", False),
        ("layer.weight.view(torch.int32)", False),
        ("layer.weight.reshape(-1)", False),
        ("layer.weight.t().reshape(-1)", True),
        ("layer.weight.detach()", False),
        ("layer.weight.data", False),
        ("layer.weight[0]", False),
        ("layer.weight[:2]", False),
        ("layer.weight.squeeze().unsqueeze(0)", False),
        ("layer.weight.to(layer.weight.dtype)", False),
        ("layer.weight.to(layer.weight.device)", False),
        ("layer.weight.cuda()", False),
        ("layer.weight.float().to(torch.float32)", True),
        ("layer.weight.to(torch.float8_e4m3fn)", True),
        ("layer.weight.clone()", True),
        ("layer.weight + 1", True),
        ("-layer.weight", True),
        ("layer.weight.max(dim=0).values", True),
        ("torch.cat([layer.weight, layer.scale])", True),
        ("torch.empty_like(layer.weight)", True),
        ("torch.zeros(4)", True),
        ("torch.transpose(layer.weight, 0, 1)", False),
        ("torch.nn.functional.pad(layer.weight, (0, 1))", True),
        ("Parameter(layer.weight.data)", False),
        ("Parameter(layer.weight.clone())", True),
        ("layer.weight.chunk(2)[0]", False),
        ("layer.weight.mul_(2)", False),
        ("layer.weight.cpu()", False),
        ("layer.weight.tolist()", False),
        ("layer.weight.size(0)", False),
    ],
)
def test_torch_table(value: str, allocates: bool) -> None:
    """A new tensor is a new address; a view, the input itself and host values are not."""
    found = brief(facts(hooks=in_method(f"layer.w = {value}")))
    assert {line for line in found if line.startswith("address")} == (
        set() if not allocates else {line for line in found if line.endswith("layer.w")}
    )
    assert any(line.endswith(" layer.w") and line.startswith("address") for line in found) is allocates
