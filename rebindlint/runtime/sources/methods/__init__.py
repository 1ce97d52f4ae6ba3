"""One module a method; each gives its scenarios. The table needs no torch, the modules need the tree."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rebindlint.runtime.sources.scenario import Scenario

__all__ = ["METHODS", "capability", "scenarios"]

METHODS: Final = {
    "marlin": "GPTQ checkpoints on Marlin kernels, with and without act-order",
    "awq-marlin": "AWQ checkpoints on Marlin kernels",
    "w4a16": "compressed-tensors INT4 weights on Marlin kernels",
    "fp8": "FP8 linear layers, one scale a tensor and one a block",
    "fp8-moe": "FP8 mixture of experts, one scale a tensor and one a block",
    "fp8-marlin": "FP8 weights on Marlin kernels, as on GPUs without FP8: linear layers and experts",
    "moe": "unquantised mixture of experts",
    "mla": "multi-head latent attention, with a plain and a quantised kv_b_proj",
    "w8a8-int8": "compressed-tensors INT8 weights and activations",
}


_ON_AMPERE: Final = frozenset({"fp8-marlin"})  # a GPU without FP8 arithmetic; the others run on a Hopper GPU


def capability(method: str) -> tuple[int, int]:
    """Of the GPU that the platform stands in for. A release may remember it, so that a process has one."""
    return (8, 0) if method in _ON_AMPERE else (9, 0)


def scenarios(method: str) -> list[Scenario]:
    """What there is to run for one of `METHODS`."""
    module = importlib.import_module(f"{__name__}.{method.replace('-', '_')}")
    found: list[Scenario] = module.scenarios()
    return found
