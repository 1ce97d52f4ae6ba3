"""Fixes that the analysis of the fixed text does not bear out."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebindlint.config import Config
from rebindlint.pipeline import Request, run

HANDED_A_COPY = """
import torch


class Kernel:
    def __init__(self, scale: torch.Tensor) -> None:
        self.scale = scale
        self.scratch = torch.zeros(2, 3)

    def apply(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale + self.scratch


class Method:
    kernel: Kernel | None = None

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        self.scale = layer.weight.sum(0)
        self.kernel = Kernel(self.scale)

    def apply(self, layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return self.kernel.apply(x)
"""
BUILT_ONCE = """        if self.kernel is None:
            self.kernel = Kernel(self.scale)
"""


@pytest.mark.parametrize(("select", "kept"), [("RB201", False), ("RB1", False), ("ALL", True)])
def test_a_fix_that_makes_a_hazard_of_another_kind_is_put_back(tmp_path: Path, select: str, kept: bool) -> None:
    """The kept kernel goes on with the first scale, unless that is copied into."""
    file = tmp_path / "hooks.py"
    file.write_text(HANDED_A_COPY)
    config = Config(select=(select,))
    outcome = run(Request((".",), config, fix=True, unsafe=True, cache=False, cwd=tmp_path))
    assert (BUILT_ONCE in file.read_text(), len(outcome.refused)) == (kept, int(select == "RB201"))
    assert {d.code for d in outcome.diagnostics} == ({"RB201"} if select == "RB201" else set())
