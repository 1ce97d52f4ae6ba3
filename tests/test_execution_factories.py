"""Attributes whose names an object is told by those that make it are called by these names."""

from __future__ import annotations

import textwrap

import pytest
from executed import brief, facts

_KERNEL = """
import torch
from torch.nn import Parameter

class Kernel:
    def __init__(self, config, param_names):
        self.config = config
        self.param_names = param_names

    def process_weights_after_loading(self, layer):
        weight, factor = self.param_names
        setattr(layer, factor, Parameter(getattr(layer, weight).sum(0)))

    def apply(self, layer, x):
        weight, factor = self.param_names
        return x @ getattr(layer, weight) * getattr(layer, factor)

class Packed(Kernel):
    def __init__(self, config, param_names):
        super().__init__(config, param_names)

    def process_weights_after_loading(self, layer):
        super().process_weights_after_loading(layer)

class Plain(Kernel):
    def process_weights_after_loading(self, layer):
        super().process_weights_after_loading(layer)

class Other:
    pass
"""


@pytest.mark.parametrize(
    ("makers", "names"),
    [
        pytest.param(
            """
            def make(config) -> Kernel:
                return choose(config)(config, param_names=["w", "factor"])
            """,
            {"layer.factor"},
            id="a factory of them",
        ),
        pytest.param(
            """
            def make_plain(config) -> Plain:
                return choose(config)(config, param_names=("w", "plain_factor"))

            def make_packed(config) -> "Packed | None":
                return choose(config)(config, param_names=("w", "packed_factor"))

            def make_other(config) -> Other:
                return choose(config)(config, param_names=("w", "other_factor"))
            """,
            {"layer.packed_factor", "layer.plain_factor", "layer.{self.param_names[1]}"},
            id="factories of each",
        ),
        pytest.param(
            """
            class Method:
                def create_weights(self, layer):
                    self.kernel = Packed(self.config, ["w", "factor"])
            """,
            {"layer.factor", "layer.{self.param_names[1]}"},
            id="by position",
        ),
        pytest.param(
            """
            def one(config) -> Kernel:
                return choose(config)(config, param_names=["w", "factor"])

            def another(config) -> Kernel:
                return choose(config)(config, param_names=["w", "other_factor"])
            """,
            {"layer.{self.param_names[1]}"},
            id="two that differ",
        ),
        pytest.param(
            """
            def make(config) -> Kernel:
                return choose(config)(config, param_names=["w", config.factor])
            """,
            {"layer.{self.param_names[1]}"},
            id="no literal",
        ),
        pytest.param("", {"layer.{self.param_names[1]}"}, id="made elsewhere"),
    ],
)
def test_names_that_makers_hand_to_the_constructor(makers: str, names: set[str]) -> None:
    found = facts(
        kernels=_KERNEL, makers="from kernels import Kernel, Other, Packed, Plain\n" + textwrap.dedent(makers)
    )
    assert brief(found) == {f"address parameter {name}" for name in names}
