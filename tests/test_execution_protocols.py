"""Which reload protocol saves a cell, and which does not."""

from __future__ import annotations

import pytest
from executed import brief, executed, facts, in_method, in_module

from rebindlint.model import Protocol


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
        ("self.w = layer.weight", set()),  # the tensor that is remembered and refreshed
    ],
)
def test_a_quantisation_methods_hook(body: str, expected: set[str]) -> None:
    found = facts(hooks=in_method(body, reads="layer.w, layer.pair, self.w"))
    assert brief(found, protocols=True) == expected


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


def test_a_hook_of_the_whole_model_is_called_by_every_reload_of_an_engine_that_knows_no_other() -> None:
    text = """
    import torch
    from torch import nn


    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.kv = nn.Linear(4, 4)
            self.w_kc = None

        def post_load_weights(self):
            self.w_kc = self.kv.weight.float() * 2

        def forward(self, x):
            return x @ self.w_kc
    """
    assert brief(facts(model=text), protocols=True) == {"address attribute self.w_kc direct"}
    engine = "def initialize_layerwise_reload(model):\n    pass\n"
    files = {"vllm/__init__": "", "vllm/model_executor/model_loader/reload/layerwise": engine, "vllm/model": text}
    assert brief(facts(**files), protocols=True) == {"address attribute self.w_kc direct+layerwise"}


def test_what_the_loader_binds_under_a_name_that_the_reload_leaves_in_place_is_copied_back_by_name() -> None:
    """No weight loader fills it, so its module is not finished before loading is."""
    model = """
        import torch
        from torch import nn


        class Score(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.empty(4, 4))
                self.bias = self.scale = None

            def forward(self, x):
                return x @ self.weight * self.scale + self.bias


        class Classifier(nn.Module):
            def __init__(self):
                super().__init__()
                self.score = Score()

            def load_weights(self, weights):
                for name, weight in weights:
                    if name.endswith("bias"):
                        self.score.bias = nn.Parameter(weight.to(self.score.weight.dtype))
                    else:
                        self.score.scale = nn.Parameter(weight.to(self.score.weight.dtype))

            def forward(self, x):
                return self.score(x)
    """
    reload = "vllm/model_executor/model_loader/reload"
    files = {
        "vllm/__init__": "",
        f"{reload}/layerwise": "def initialize_layerwise_reload(model): ...\n",
        "vllm/model": model,
    }
    both = {"address parameter self.score.bias direct+layerwise", "address parameter self.score.scale direct+layerwise"}
    assert brief(facts(**files), protocols=True) == both
    files[f"{reload}/meta"] = 'SKIP_TENSORS = {"bias"}\n'
    kept = {"address parameter self.score.bias direct", "address parameter self.score.scale direct+layerwise"}
    assert brief(facts(**files), protocols=True) == kept


def test_a_guarded_alias_of_a_remembered_parameter_is_right() -> None:
    assert (
        facts(hooks=in_method("if not hasattr(self, 'kept'):\n    self.kept = layer.weight", reads="self.kept")) == []
    )


@pytest.mark.parametrize(
    "release",
    [
        "del layer.weight",
        "delattr(layer, 'weight')",
        "layer.weight = None",
        "layer.register_parameter('weight', None)",
    ],
)
def test_a_released_source_comes_back_with_the_next_load(release: str) -> None:
    text = in_method(f"layer.packed = layer.weight * 2\n{release}", reads="layer.packed")
    found = brief(facts(hooks=text.replace("return layer.weight, ", "return ")), protocols=True)
    assert any(line.startswith("address attribute layer.packed") and "layerwise" in line for line in found)


@pytest.mark.parametrize(
    "consumed",
    [
        "layer.packed = layer.weight * 2\ndel layer.weight",
        "layer.packed = layer.weight.data * 2\nlayer.weight = None",
        "layer.packed = layer.weight\ndel layer.weight\nlayer.packed = layer.packed * layer.scale",
        "del layer.scale\nlayer.packed = layer.weight * 2",
    ],
)
def test_an_engine_that_reloads_directly_does_not_make_a_deleted_parameter_again(consumed: str) -> None:
    text = in_method(consumed, reads="layer.packed").replace("return layer.weight, layer.scale, ", "return ")
    direct = [fact for fact in facts(hooks=text) if Protocol.DIRECT in fact.protocols]
    assert direct
    assert all(fact.restored for fact in direct)  # only where a framework puts its parameters back first


def test_where_one_option_deletes_what_the_next_run_needs_the_other_one_shows_what_is_bound() -> None:
    text = in_method(
        "folded = layer.scale.max()\nif self.fast and self.narrow:\n    layer.packed = folded * layer.weight\nif self.other:\n    del layer.scale",
        reads="layer.packed",
    ).replace("return layer.weight, layer.scale, ", "return ")
    (packed,) = [fact for fact in facts(hooks=text) if fact.cell.path == "layer.packed"]
    assert Protocol.DIRECT in packed.protocols
    assert not packed.restored


def test_where_the_same_option_deletes_what_the_next_run_needs_nothing_shows_it() -> None:
    text = in_method(
        "folded = layer.scale.max()\nif self.fast and self.narrow:\n    layer.packed = folded * layer.weight\n    del layer.scale",
        reads="layer.packed",
    ).replace("return layer.weight, layer.scale, ", "return ")
    assert all(fact.restored for fact in facts(hooks=text) if fact.cell.path == "layer.packed")


def test_a_deleted_parameter_that_is_only_asked_for_leaves_what_was_derived_stale() -> None:
    text = in_method(
        "if hasattr(layer, 'weight'):\n    layer.packed = layer.weight * 2\n    del layer.weight", reads="layer.packed"
    ).replace("return layer.weight, ", "return ")
    found = brief(facts(hooks=text), protocols=True)
    assert any(line.startswith("freshness none layer.packed") and "direct" in line for line in found)


def test_what_the_second_run_transforms_again() -> None:
    assert facts(hooks=in_module("self.weight.copy_(self.weight * 2)")) == []  # the next load overwrites it first
    folded = in_module("self.sums.add_(1)", init="self.sums = torch.ones(4)", reads="self.sums")
    (found,) = facts(hooks=folded)
    assert brief([found]) == {"freshness copy self.sums"}
    assert found.retransformed


@pytest.mark.parametrize(
    ("body", "overlaps"),
    [
        ("layer.weight.copy_(layer.weight.t())", True),
        ("layer.weight.copy_(layer.weight.t().clone())", False),
        ("layer.weight.copy_(layer.weight)", False),
        ("layer.weight.copy_(layer.scale.t())", False),
    ],
)
def test_a_copy_out_of_what_it_overwrites(body: str, overlaps: bool) -> None:
    assert any(f.overlapping for f in facts(hooks=in_method(body))) is overlaps


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
        ("rebinds", "replace_parameter(layer, 'w', layer.weight * 2, prefer_copy=True)", False, True),
        ("copies", "replace_parameter(layer, 'w', layer.weight * 2, prefer_copy=True)", False, True),
    ],
)
def test_a_replace_helper_does_what_its_source_says(helper: str, call: str, rebinds: bool, unsupported: bool) -> None:
    found = facts(tool=HELPERS[helper], hooks=in_method(f"from tool import replace_parameter\n{call}"))
    assert bool([f for f in found if f.hazard == "address"]) is rebinds
    assert any(f.prefer_copy_unsupported for f in found) is unsupported
    for fact in found:
        assert fact.binding == "replace"
        assert fact.helper is not None
        assert fact.statement.filename == "hooks.py"


@pytest.mark.parametrize(
    ("moved", "expected"),
    [
        ("torch.roll(layer.weight, 1)", {"direct", "layerwise"}),
        ("repacked(layer.weight)", {"direct"}),  # as far as is known it has another shape: copying back raises
        ("torch.cat([layer.weight, layer.weight])", set()),  # nor does it fit when it is loaded directly
    ],
)
def test_a_reload_raises_that_copies_back_into_memory_of_another_shape(moved: str, expected: set[str]) -> None:
    body = f"if not layer.done:\n    layer.weight.data = {moved}\n    layer.done = True"
    found = facts(hooks="from kernels import repacked\n" + in_method(body))
    assert {p.value for fact in found if fact.cell.name == "weight" for p in fact.protocols} == expected


@pytest.mark.parametrize(("emptied", "found"), [("torch.empty(4, 4)", True), ("torch.empty(0)", False)])
def test_a_reload_raises_that_copies_back_into_what_the_first_run_emptied(emptied: str, found: bool) -> None:
    body = f"if layer.packed is None:\n    layer.packed = layer.weight * 2\n    layer.weight.data = {emptied}"
    packed = [fact for fact in facts(hooks=in_method(body, reads="layer.packed")) if fact.cell.name == "packed"]
    assert packed
    assert any(Protocol.LAYERWISE in fact.protocols for fact in packed) == found


@pytest.mark.parametrize(
    ("file", "worker", "certain"),
    [
        ("models/llama_eagle3.py", "def reload_weights(model): ...", False),
        ("models/llama.py", "def reload_weights(model): ...", True),
        ("models/llama_eagle3.py", "def start_draft_weight_update(model): ...", True),
    ],
)
def test_draft_models_are_judged_by_whether_their_engine_reloads_them(file: str, worker: str, certain: bool) -> None:
    layerwise = {"engine/model_loader/reload/layerwise.py": "def finalize_layerwise_reload(model): ...\n"}
    text = in_module("self.fused = self.weight * 2", reads="self.fused")
    files = {**layerwise, "engine/worker.py": worker, f"engine/{file}": text}
    found = [fact for fact in executed(**files).facts if fact.cell.name == "fused"]
    assert [fact.certain for fact in found] == [certain]


def test_what_a_loading_function_binds_is_certain_where_the_engine_is_in_the_tree() -> None:
    model = """
        import torch
        from torch import nn
        from vllm.logger import init_logger


        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.empty(4))

            def load_weights(self, weights):
                for name, loaded in weights:
                    self.weight.data.copy_(loaded)
                self.doubled = self.weight * 2

            def forward(self, x):
                return x * self.doubled
    """
    for top, certain in (("vllm", True), ("plugin", False)):
        found = executed(**{f"{top}/__init__.py": "", f"{top}/model.py": model}).facts
        assert [(fact.cell.name, fact.certain) for fact in found] == [("doubled", certain)]


_UPDATER = """
    import torch


    class WeightUpdater:
        def update_weights_from_disk(self, path):
            error = why_not(self.model)
            if error is not None:
                return False, error
            return load(self.model, path), ""


    def why_not(model: torch.nn.Module) -> str | None:
        if any(getattr(module, "parts", None) is not None for module in model.modules()):
            return "what was split cannot be split again"
        for module in model.modules():
            reason = getattr(module, "update_error", None)
            if reason is not None:
                return reason
            if getattr(module, "wanted", None) is None:
                return "what has to be there is not"
        return None


    def embedding(model: torch.nn.Module) -> torch.nn.Module | None:
        for module in model.modules():
            if getattr(module, "table", None) is not None:
                return module
        return None
"""


@pytest.mark.parametrize(
    ("body", "cell", "refused"),
    [
        ("self.parts = self.weight.float()", "parts", True),
        ("self.table = self.weight.float(); self.update_error = 'no'", "table", True),
        ("self.table = self.weight.float(); self.update_error = None", "table", False),
        ("self.table = self.weight.float()", "table", False),
        ("self.wanted = self.weight.float()", "wanted", False),
    ],
    ids=["what it asks for", "the reason it asks for", "no reason", "what another looks for", "what must be there"],
)
def test_an_engine_may_refuse_to_load_again_what_has_certain_attributes(body: str, cell: str, refused: bool) -> None:
    layer = in_module(
        body,
        reads="self.parts, self.table, self.wanted",
        init="self.parts = self.table = self.wanted = self.update_error = None",
    )
    both = {f"address attribute self.{cell} direct+layerwise"}
    assert brief(facts(layer=layer), protocols=True) == both
    elsewhere = {f"address attribute self.{cell} layerwise"}
    assert brief(facts(layer=layer, engine=_UPDATER), protocols=True) == (elsewhere if refused else both)
