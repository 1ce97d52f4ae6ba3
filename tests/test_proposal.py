"""What fixers make of statements that are not plain: several targets, computed names, comments, memory that is filled later."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path

import pytest

from rebindlint.config import Config
from rebindlint.pipeline import Request, run

TREES = Path(__file__).parent / "fixtures" / "_trees"
IMPL = """
import torch


def pair(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return weight.abs(), weight.float()


class Impl:
    def __init__(self, layer: torch.nn.Module) -> None:
        self.layer = layer

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        weight: torch.Tensor = self.layer.weight.float()
{body}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.first * self.second
"""
METHOD = """
import torch
from torch.nn import Parameter

from {helper} import {function}


class Method:
    def create_weights(self, layer: torch.nn.Module) -> None:
        layer.weight = Parameter(torch.zeros(4, 4), requires_grad=False)

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
{body}

    def apply(self, layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x * layer.first * layer.second
"""


def block(text: str) -> str:
    return textwrap.indent(textwrap.dedent(text).strip("\n"), " " * 8)


def fixed(folder: Path, source: str, *, tree: str = "", unsafe: bool = False) -> tuple[str, list[str]]:
    """The source after fixing, and the attributes that were flagged before; fixing once more changes nothing."""
    file = folder / "hooks.py"
    if tree:
        shutil.copytree(TREES / tree, folder, dirs_exist_ok=True)
        file = next(folder.rglob("layers")) / "hooks.py"
    file.write_text(source)
    request = Request((".",), Config(root=folder, jobs=1), cache=False, cwd=folder)
    flagged = [d.attribute.rpartition(".")[2] for d in run(request).diagnostics]
    for _ in range(2):
        outcome = run(Request((".",), request.config, fix=True, unsafe=unsafe, cache=False, cwd=folder))
    assert outcome.changed == ()
    return file.read_text(), flagged


def of_impl(folder: Path, body: str, *, unsafe: bool = False) -> str | None:
    """The hook's body after fixing; None when nothing was changed. Something must have been flagged."""
    source = IMPL.format(body=block(body))
    text, flagged = fixed(folder, source, unsafe=unsafe)
    assert flagged
    if text == source:
        return None
    start = text.index("weight: torch.Tensor = self.layer.weight.float()\n")
    return textwrap.dedent(text[start:].partition("\n")[2].partition("\n\n    def forward")[0])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


COPY = """\
old_{0} = getattr(self, "{0}", None)
if (
    old_{0} is not None
    and new_{0} is not None
    and old_{0}.shape == new_{0}.shape
    and old_{0}.dtype == new_{0}.dtype
):
    old_{0}.copy_(new_{0})
else:
    self.{0} = new_{0}
"""


def test_names_and_unread_attributes_between_flagged_targets_stay_as_they_are(folder: Path) -> None:
    found = of_impl(folder, "self.first, unread = pair(weight)\nself.second = weight + unread")
    assert found is not None
    assert found.startswith("new_first, unread = pair(weight)\n" + COPY.format("first"))


def test_a_target_that_is_not_flagged_is_bound_as_before(folder: Path) -> None:
    found = of_impl(folder, "self.first, self.other = pair(weight)\nself.second = None")
    assert found is not None
    assert found.startswith("new_first, new_other = pair(weight)\n" + COPY.format("first") + "self.other = new_other\n")


def test_a_target_whose_receiver_is_another_target_is_left_alone(folder: Path) -> None:
    assert of_impl(folder, "self, self.first = self, weight * 2\nself.second = None") is None


@pytest.mark.parametrize(
    "statement",
    [
        "self.first = self.other = weight * 2",
        "self.first: torch.Tensor = weight * 2",
        "self.other = 1; self.first = weight * 2",
        "if self.layer is not None: self.first = weight * 2",
        'self.first = torch.ops.demo.scale(weight * 2, """\n    text\n""").float()',
        "*rest, self.first = weight, weight * 2",
        "self.first = weight\nself.first = self.first * 2",
    ],
    ids=["chain", "annotation", "two on a line", "one-line suite", "text of several lines", "star", "in steps"],
)
def test_what_no_fixer_understands_is_reported_and_left_alone(folder: Path, statement: str) -> None:
    assert of_impl(folder, f"{statement}\nself.second = None", unsafe=True) is None


def test_memory_that_is_filled_after_it_was_bound_is_not_copied_too_early(folder: Path) -> None:
    body = "table = torch.zeros_like(weight)\nself.first = table\ntable.copy_(weight)\nself.second = None"
    assert of_impl(folder, body) is None


def test_memory_that_is_filled_through_an_out_argument_is_not_copied_too_early(folder: Path) -> None:
    body = "table = weight.abs()\nself.first = table.view(-1)\ntorch.add(weight, 1, out=table)\nself.second = None"
    assert of_impl(folder, body) is None


def test_what_is_read_after_it_was_bound_may_be_copied(folder: Path) -> None:
    body = "table = weight.abs()\nself.first = table\nassert table.dtype == act_dtype\nself.second = None"
    assert of_impl(folder, body) is not None


def test_a_long_value_is_wrapped_like_a_formatter_does(folder: Path) -> None:
    value = "torch.nn.functional.scaled_dot_product_attention(weight, weight, weight)"
    found = of_impl(folder, f"self.first = {value}\nself.second = None")
    assert found is not None
    assert found.startswith(
        "new_first = torch.nn.functional.scaled_dot_product_attention(\n    weight, weight, weight\n)\n"
    )


def of_method(folder: Path, body: str, tree: str, *, unsafe: bool = False, more: str = "") -> str | None:
    source = METHOD.format(helper="vllm.model_executor.utils", function="replace_parameter", body=block(body)) + more
    text, flagged = fixed(folder, source, tree=tree, unsafe=unsafe)
    assert flagged
    if text == source:
        return None
    start = text.index("def process_weights_after_loading")
    return textwrap.dedent(text[start:].partition("\n")[2].partition("\n\n    def apply")[0])


def test_a_computed_name_may_hold_braces(folder: Path) -> None:
    body = """
    layer.second = None
    for prefix in ("fir",):
        replace_parameter(layer, f"{prefix}st", layer.weight * 2)
    """
    found = of_method(folder, body, "rebinds")
    assert found is not None
    assert 'old_tensor = getattr(layer, f"{prefix}st", None)\n' in found
    assert '        replace_parameter(layer, f"{prefix}st", new_tensor)' in found


def test_a_name_that_a_call_computes_is_not_computed_twice(folder: Path) -> None:
    body = 'setattr(layer, "first".lower(), Parameter(layer.weight * 2, requires_grad=False))\nlayer.second = None'
    source = METHOD.format(helper="vllm.model_executor.utils", function="replace_parameter", body=block(body))
    text, _ = fixed(folder, source, tree="rebinds", unsafe=True)
    assert text == source


def test_comments_that_would_be_lost_stand_above(folder: Path) -> None:
    body = """
    layer.first = Parameter(
        # column-major
        (layer.weight * 2).to(torch.int8),
        requires_grad=False,  # inference only
    )
    layer.second = None
    """
    found = of_method(folder, body, "prefer_copy")
    assert found is not None
    assert found.startswith(
        "# column-major\n# inference only\n"
        'replace_parameter(\n    layer, "first", (layer.weight * 2).to(torch.int8), prefer_copy=True\n)\n'
    )


def test_an_attribute_that_is_a_plain_tensor_elsewhere_is_not_registered(folder: Path) -> None:
    """A module refuses a plain tensor where a parameter is registered."""
    more = """

def forget(layer: torch.nn.Module) -> None:
    layer.first = torch.zeros(1)
"""
    source = IMPL.replace("class Impl:", "class Impl(torch.nn.Module):").replace(
        "        self.layer = layer", "        super().__init__()\n        self.layer = layer"
    )
    body = block("self.first = weight * 2\nself.second = None")
    plain, _ = fixed(folder, source.format(body=body) + more, tree="prefer_copy")
    assert "replace_parameter" not in plain
    assert "old_first.copy_(new_first)" in plain
    registered, _ = fixed(folder, source.format(body=body), tree="prefer_copy")
    assert 'replace_parameter(self, "first", weight * 2, prefer_copy=True)' in registered


def test_strides_are_compared_where_the_first_run_could_copy(folder: Path) -> None:
    body = "layer.weight = Parameter(layer.weight * 2, requires_grad=False)\nlayer.first = layer.second = None"
    source = METHOD.format(helper="vllm.model_executor.utils", function="replace_parameter", body=block(body))
    text, flagged = fixed(folder, source.replace("layer.first *", "layer.weight *"), tree="rebinds", unsafe=True)
    assert flagged == ["weight"]
    assert "and old_weight.stride() == new_weight.stride()" in text


def test_the_source_is_kept_under_a_name_of_its_own(folder: Path) -> None:
    body = "self.layer = self.layer\nself.first = self.first.to(torch.float32)\nself.second = None"
    source = IMPL.format(body=block(body)).replace(
        "        self.layer = layer\n",
        "        self.layer = layer\n        self.first = self._first_source = layer.weight\n",
        1,
    )
    text, flagged = fixed(folder, source)
    assert flagged == ["first"]
    assert "self._first_source_2 = self.first\n" in text
    assert "self.first.copy_(self._first_source_2)\n" in text


def test_a_parenthesised_value_loses_its_parentheses_as_an_argument(folder: Path) -> None:
    body = """
    layer.first = Parameter(
        (
            layer.weight.reshape(2, 2, 4).repeat_interleave(2, dim=0)
            .permute(1, 0, 2)
            .contiguous()
        ),
        requires_grad=False,
    )
    layer.second = None
    """
    found = of_method(folder, body, "prefer_copy")
    assert found is not None
    assert found.startswith(
        "replace_parameter(\n"
        "    layer,\n"
        '    "first",\n'
        "    layer.weight.reshape(2, 2, 4).repeat_interleave(2, dim=0)\n"
        "    .permute(1, 0, 2)\n"
        "    .contiguous(),\n"
        "    prefer_copy=True,\n"
        ")\n"
    )


def test_a_tuple_is_not_copied(folder: Path) -> None:
    assert of_impl(folder, "self.first = (weight * 2, weight * 3)\nself.second = None", unsafe=True) is None


def test_memory_without_weights_does_not_become_a_parameter(folder: Path) -> None:
    source = IMPL.replace("class Impl:", "class Impl(torch.nn.Module):").replace(
        "        self.layer = layer", "        super().__init__()\n        self.layer = layer"
    )
    body = block("self.first = torch.ones(4)\nself.second = None")
    text, _ = fixed(folder, source.format(body=body), tree="prefer_copy")
    assert "replace_parameter" not in text
    assert "old_first.copy_(new_first)" in text


def test_targets_on_lines_of_their_own_stay_there(folder: Path) -> None:
    body = """
    (
        self.first,  # for the kernel
        unread,
    ) = pair(weight)
    self.second = weight + unread
    """
    found = of_impl(folder, body)
    assert found is not None
    start = "(\n    new_first,  # for the kernel\n    unread,\n) = pair(weight)\n"
    assert found.startswith(start + COPY.format("first"))


def test_a_comment_that_stays_inside_is_not_repeated_above(folder: Path) -> None:
    body = """
    self.first = torch.cat(
        [
            weight,  # rows
            weight,
        ]
    )
    self.second = None
    """
    found = of_impl(folder, body)
    assert found is not None
    assert found.startswith("new_first = torch.cat(\n    [\n        weight,  # rows\n")
    assert found.count("# rows") == 1


def test_a_name_needs_no_second_name(folder: Path) -> None:
    body = "packed = layer.weight * 2\nlayer.weight.data = packed\nlayer.first = layer.second = None"
    source = METHOD.format(helper="vllm.model_executor.utils", function="replace_parameter", body=block(body))
    text, flagged = fixed(folder, source.replace("layer.first *", "layer.weight *"), tree="rebinds", unsafe=True)
    assert flagged == ["weight"]
    assert "        layer.weight.shape == packed.shape\n" in textwrap.dedent(text)
    assert "            layer.weight.data.copy_(packed)\n" in text


@pytest.mark.parametrize(
    "value",
    ["torch.ops.npu.npu_format_cast(layer.weight * 2, 29)", "(layer.weight * 2).to(memory_format=order)"],
    ids=["device's own", "named"],
)
def test_memory_in_another_order_is_not_copied_into_what_was_there(folder: Path, value: str) -> None:
    body = (
        f"order = torch.channels_last\npacked = {value}\nlayer.weight.data = packed\nlayer.first = layer.second = None"
    )
    source = METHOD.format(helper="vllm.model_executor.utils", function="replace_parameter", body=block(body))
    source = source.replace("layer.first *", "layer.weight *")
    text, flagged = fixed(folder, source, tree="rebinds", unsafe=True)
    assert flagged == ["weight"]
    assert text == source


def test_a_helper_that_takes_no_none_gets_none(folder: Path) -> None:
    source = """
import torch


class Method:
    def __init__(self, limit: float | None, scale: torch.Tensor) -> None:
        self.limit = limit

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        layer.first = None if self.limit is None else (self.limit / layer.weight).float()
        layer.second = (layer.weight * 2).float()

    def apply(self, layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x * layer.first * layer.second
"""
    text, flagged = fixed(folder, source, tree="sglang")
    assert flagged == ["first", "second"]
    assert 'copy_or_rebind_param(layer, "second", (layer.weight * 2).float())' in text
    assert '"first", None' not in text.replace('getattr(layer, "first", None)', "")
    assert "        and new_first is not None\n" in textwrap.dedent(text)


@pytest.mark.parametrize("deleted", ["del layer.weight", 'delattr(layer, "weight")'])
def test_what_was_deleted_cannot_be_copied_into(folder: Path, deleted: str) -> None:
    body = f"""
    doubled = layer.weight * 2
    {deleted}
    layer.weight = Parameter(doubled, requires_grad=False)
    layer.first = layer.second = None
    """
    source = METHOD.format(helper="vllm.model_executor.utils", function="replace_parameter", body=block(body))
    source = source.replace("layer.first *", "layer.weight *")
    text, flagged = fixed(folder, source, tree="prefer_copy", unsafe=True)
    assert "weight" in flagged
    assert text == source
    kept, _ = fixed(folder, source.replace(f"        {deleted}\n", ""), tree="prefer_copy", unsafe=True)
    assert 'replace_parameter(layer, "weight", doubled, prefer_copy=True)' in kept


PRESENT = [
    "if other is not None:\n    self.first = other",
    "if self.layer and other is not None:\n    self.first = other",
    "assert other is not None\nself.first = other",
]
PERHAPS_ABSENT = [
    "self.first = other",
    "if other is not None or self.layer:\n    self.first = other",
    "if other is not None:\n    other = other * 2 if self.layer else None\n    self.first = other",
    "if self.layer:\n    assert other is not None\nself.first = other",
]


@pytest.mark.parametrize("body", [*PRESENT, *PERHAPS_ABSENT])
def test_none_is_asked_for_where_nothing_rules_it_out(folder: Path, body: str) -> None:
    found = of_impl(folder, f"other = None\nif act_dtype:\n    other = weight * 2\n{body}\nself.second = None")
    assert found is not None
    assert ("and other is not None\n" in found) == (body in PERHAPS_ABSENT)


def test_memory_that_is_handed_to_a_kernel_after_it_was_bound_is_not_copied_too_early(folder: Path) -> None:
    body = "table = weight.abs()\nself.first = table\ntorch.ops.demo.fill(table, weight)\nself.second = None"
    assert of_impl(folder, body) is None
    kept = "table = weight.abs()\nself.first = table\nself.layer.register(table)\nself.second = None"
    assert of_impl(folder, kept) is not None


def test_lines_that_are_aligned_with_the_first_stay_behind_it(folder: Path) -> None:
    body = """
    self.first = torch.empty([weight.shape[0], 1],
                             dtype=torch.float)
    self.second = weight * 2
    """
    found = of_impl(folder, body)
    assert found is not None
    assert found.startswith(
        'if getattr(self, "first", None) is None:\n'
        "    self.first = torch.empty([weight.shape[0], 1],\n"
        "                             dtype=torch.float)\n"
    )
