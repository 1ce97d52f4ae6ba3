"""What a value may be on any path, read off the source."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from rebindlint.config import Config
from rebindlint.discover import Source
from rebindlint.imports import functions
from rebindlint.index import build_index
from rebindlint.origins import Origins

MODULES = {
    "scales": """
        import torch

        def spread(scale, experts):
            return scale.max().expand(experts)

        def both(scale, other):
            if scale.dim() > 1:
                scale = scale.float()
            return scale, other

        def perhaps(scale):
            if scale.dim() == 0:
                return
            return torch.cat([scale, scale])

        def declared(scale: torch.Tensor, limit: torch.Tensor | None, any_of_them):
            return scale, limit, any_of_them

        def endless(scale):
            return endless(scale)

        def dense(scale, experts):
            return spread(scale, experts).contiguous()
    """,
    "hooks": """
        import torch
        from torch.nn import Parameter
        from scales import both, declared, dense, endless, perhaps, spread

        class Method:
            def hook(self, layer, scale: torch.Tensor, limit: torch.Tensor | None = None):
                from scales import spread as locally
                one = spread(layer.scale, 4)
                (first, second) = both(layer.scale.expand(4), layer.scale * 2)
                values, places = torch.ops.demo.largest(layer.scale)
                summed = layer.scale
                summed += 1
                for item in layer.scales:
                    looped = item
                {marker}

            def own(self, scale):
                return self.helper(scale)

            def helper(self, scale):
                return scale.view(-1)
    """,
}


def origins(folder: Path) -> Origins:
    sources = []
    for name, text in MODULES.items():
        text = textwrap.dedent(text.replace("{marker}", "pass"))
        sources.append(Source(folder / f"{name}.py", f"{name}.py", name, text))
    index = build_index(sources, Config(root=folder, jobs=1))
    module = index.module("hooks")
    assert module is not None
    return Origins(next(f for f in functions(module.tree) if f.name == "hook"), module, index)


def parsed(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body


@pytest.mark.parametrize(
    "expression",
    [
        "layer.scale.expand(4)",
        "layer.scale.expand(4).view(-1).to(torch.float32)",
        "torch.broadcast_to(layer.scale, (4,))",
        "spread(layer.scale, 4)",
        "locally(layer.scale, 4)",
        "one",
        "first",
        "Parameter(one, requires_grad=False)",
        "summed if layer.scale is None else one",
        "self.own(one)",
    ],
)
def test_repeats(tmp_path: Path, expression: str) -> None:
    assert origins(tmp_path).may_repeat(parsed(expression))


@pytest.mark.parametrize(
    "expression",
    ["second", "dense(layer.scale, 4)", "one * 2", "one.contiguous()", "endless(one)", "layer.scale", "looped"],
)
def test_does_not_repeat(tmp_path: Path, expression: str) -> None:
    assert not origins(tmp_path).may_repeat(parsed(expression))


def test_items_of_a_tuple_are_told_apart(tmp_path: Path) -> None:
    found = origins(tmp_path)
    value = parsed("both(one, layer.scale)")
    assert [found.may_repeat(value, item) for item in (0, 1)] == [True, False]


@pytest.mark.parametrize(
    "expression",
    [
        "layer.scale * 2",
        "-layer.scale",
        "torch.cat([layer.scale])",
        "torch.ops.demo.pack(layer.scale)",
        "Parameter(layer.scale)",
        "layer.scale.float()",
        "layer.scale.data",
        "scale",
        "scale if limit is None else scale.abs()",
        "second",
        "places",
        "locally(layer.scale, 4)",
    ],
)
def test_is_a_tensor(tmp_path: Path, expression: str) -> None:
    assert origins(tmp_path).is_surely_tensor(parsed(expression))


@pytest.mark.parametrize(
    "expression",
    [
        "None",
        "limit",
        "layer.scale",
        "unknown",
        "unknown(layer.scale)",
        "perhaps(layer.scale)",
        "endless(scale)",
        "looped",
        "scale.item()",
        "scale if limit is None else None",
        "limit or scale",
        "declared(scale, limit, 1)[0]",
    ],
)
def test_may_be_none(tmp_path: Path, expression: str) -> None:
    assert not origins(tmp_path).is_surely_tensor(parsed(expression))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("torch.ops.npu.npu_format_cast(scale, 29).transpose(-1, -2)", True),
        ("scale.to(memory_format=torch.channels_last)", True),
        ("scale.to_mkldnn()", True),
        ("scale.to(torch.float32).contiguous()", False),
        ("torch.ops.npu.npu_format_cast(scale, 29) * 2", False),
    ],
)
def test_formats_that_strides_do_not_tell(tmp_path: Path, expression: str, expected: bool) -> None:
    assert origins(tmp_path).may_be_in_private_format(parsed(expression)) is expected
