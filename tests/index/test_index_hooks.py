"""Hook roots, replace helpers, readers: what the index finds by name and by text."""

from __future__ import annotations

from pathlib import Path

import pytest
from executed import index_of

from rebindlint.index import find_hooks
from rebindlint.index.readers import Readers
from rebindlint.model import HelperKind, Protocol

HOOKS = """
class Method:
    def process_weights_after_loading(self, layer):
        layer.x = 1

class Empty:
    def process_weights_after_loading(self, layer):
        '''Nothing to do.'''

class Abstract:
    def process_weights_after_loading(self, layer):
        raise NotImplementedError

class Trivial:
    def process_weights_after_loading(self, layer):
        return None

class Model:
    def load_weights(self, weights):
        for name, weight in weights:
            self.copy(name, weight)
        self.finalize_experts()

    def finalize_experts(self):
        self.inner.prepare_kernel()

    def copy(self, name, weight):
        pass

class Inner:
    def prepare_kernel(self):
        self.merge_scales()

    def merge_scales(self):
        self.scale = 1

    def prepare_inputs(self, x):
        self.inputs = x

    def after_load(self):
        self.w = 1

    def custom(self):
        self.w = 2

def process_weights_after_loading(model):
    model.done = True
"""


def test_hooks_by_name_and_those_reached_from_loading(tmp_path: Path) -> None:
    index = index_of(tmp_path, hooks=HOOKS)
    found = {hook.name: hook.from_loading for hook in find_hooks(index)}
    assert found == {
        "Method.process_weights_after_loading": False,
        "Model.finalize_experts": True,
        "Inner.prepare_kernel": True,
        "Inner.merge_scales": True,
    }


@pytest.mark.parametrize("extra", ["after_load", "hooks:Inner.after_load"])
def test_further_hooks_are_named_by_the_configuration(tmp_path: Path, extra: str) -> None:
    index = index_of(tmp_path, hooks=HOOKS, other="class Inner:\n    def unrelated(self): self.x = 1\n")
    added = {h.name for h in find_hooks(index, [extra])} - {h.name for h in find_hooks(index)}
    assert added == {"Inner.after_load"}


def test_an_exact_hook_names_one_class_only(tmp_path: Path) -> None:
    text = "class A:\n    def tune(self): self.x = 1\nclass B:\n    def tune(self): self.x = 1\n"
    index = index_of(tmp_path, one=text, two=text)
    assert [(h.function.module.name, h.name) for h in find_hooks(index, ["two:B.tune"])] == [("two", "B.tune")]
    assert len(find_hooks(index, ["tune"])) == 4


def test_hooks_come_in_the_order_of_files_and_lines(tmp_path: Path) -> None:
    text = "class {}:\n    def process_weights_after_loading(self, layer):\n        layer.x = 1\n"
    index = index_of(tmp_path, b=text.format("Third"), a=text.format("First") + text.format("Second"))
    assert [h.name.split(".")[0] for h in find_hooks(index)] == ["First", "Second", "Third"]


def test_hooks_in_broken_files_are_skipped_and_reported(tmp_path: Path) -> None:
    index = index_of(tmp_path, broken="def process_weights_after_loading(:\n", hooks=HOOKS)
    assert find_hooks(index)
    assert list(index.failures) == ["broken.py"]


REBINDS = """
def replace_parameter(layer, param_name, new_data):
    setattr(layer, param_name, Parameter(new_data, requires_grad=False))
"""
PREFER_COPY = """
def replace_parameter(layer, param_name, new_data, prefer_copy=False):
    old = getattr(layer, param_name, None)
    if prefer_copy and old is not None and old.shape == new_data.shape:
        old.data.copy_(new_data)
        return
    setattr(layer, param_name, Parameter(new_data, requires_grad=False))
"""
COPIES = """
def replace_parameter(layer, param_name, new_tensor):
    old = getattr(layer, param_name, None)
    if old is not None and old.shape == new_tensor.shape and old.stride() == new_tensor.stride():
        old.data.copy_(new_tensor)
    else:
        old.data = new_tensor
"""
COPY_OR_REBIND = """
def copy_or_rebind_param(module, name, value):
    old = getattr(module, name, None)
    if old is not None and old.shape == value.shape and old.dtype == value.dtype:
        old.data.copy_(value)
    else:
        old.data = value
"""


@pytest.mark.parametrize(
    ("text", "kind", "function", "third"),
    [
        (REBINDS, HelperKind.REBINDS, "replace_parameter", "new_data"),
        (PREFER_COPY, HelperKind.PREFER_COPY, "replace_parameter", "new_data"),
        (COPIES, HelperKind.COPIES, "replace_parameter", "new_tensor"),
        (COPY_OR_REBIND, HelperKind.COPIES_OR_MOVES, "copy_or_rebind_param", "value"),
        (REBINDS + COPY_OR_REBIND, HelperKind.COPIES_OR_MOVES, "copy_or_rebind_param", "value"),
    ],
    ids=["rebinds", "prefer-copy", "copies", "copies-or-moves", "best of two"],
)
def test_the_dialect_is_read_from_the_helpers_source(
    tmp_path: Path, text: str, kind: HelperKind, function: str, third: str
) -> None:
    index = index_of(tmp_path, **{"engine/__init__": "", "engine/tool": text, "engine/deep/user": ""})
    dialect = index.dialect_for("engine.deep.user")
    assert (dialect.kind, dialect.module, dialect.function) == (kind, "engine.tool", function)
    assert dialect.parameters[2] == third


def test_a_tree_without_helper_has_no_dialect(tmp_path: Path) -> None:
    assert index_of(tmp_path, m="import torch").dialect_for("m").kind is None


def test_each_top_package_has_its_own_dialect(tmp_path: Path) -> None:
    index = index_of(tmp_path, **{"a/__init__": "", "a/t": REBINDS, "b/__init__": "", "b/t": COPIES})
    assert index.dialect_for("a.x").kind is HelperKind.REBINDS
    assert index.dialect_for("b.x").kind is HelperKind.COPIES


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"vllm/__init__": "", "vllm/m": ""}, Protocol.LAYERWISE),
        ({"vllm/__init__": "", "m": "import torch"}, Protocol.LAYERWISE),
        ({"m": "from vllm.model import Layer"}, Protocol.LAYERWISE),
        ({"sglang/__init__": "", "sglang/m": "import vllm"}, Protocol.DIRECT),
        ({"m": "import torch"}, Protocol.DIRECT),
        ({"m": "import torch", "tests/stubs/vllm/__init__": ""}, Protocol.DIRECT),
    ],
)
def test_the_reload_protocol_is_that_of_the_trees_engine(
    tmp_path: Path, files: dict[str, str], expected: Protocol
) -> None:
    module = next(name.replace("/", ".") for name in files if name.endswith("m"))
    assert index_of(tmp_path, **files).protocol_of(module) is expected


READS = """
class Layer:
    def __init__(self):
        self.constructed = 1
        use(self.constructed)
    def process_weights_after_loading(self, layer):
        use(layer.hooked)
        layer.written = 1
    def forward(self, x):
        self.written = x
        self.annotated: int = x
        self.compared == x
        return x + self.read + getattr(self, "by_name", None)
    def weight_loader(self, p):
        return self.loaded
"""


@pytest.mark.parametrize(
    ("name", "visible"),
    [
        ("read", True),
        ("by_name", True),
        ("compared", True),
        ("hooked", False),
        ("written", False),
        ("annotated", False),
        ("constructed", False),
        ("loaded", False),
        ("rea", False),
        ("elsewhere", True),
    ],
)
def test_visible_is_what_run_time_code_reads(tmp_path: Path, name: str, visible: bool) -> None:
    index = index_of(tmp_path, layer=READS, kernel="def apply(layer):\n    return layer.elsewhere\n")
    assert Readers.of(index).is_visible(name, "layer.py") is visible
