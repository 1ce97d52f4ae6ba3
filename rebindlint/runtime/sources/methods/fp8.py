"""FP8 linear layers from FP8 checkpoints, one scale a tensor and one a block of 128 by 128."""

from __future__ import annotations

from typing import Any, Final

import torch

from rebindlint.runtime.sources.methods.linear import INPUTS, OUTPUTS, linear_scenario
from rebindlint.runtime.sources.scenario import Scenario, random_tensor
from rebindlint.runtime.sources.upstream import first_upstream

__all__ = ["BLOCK", "fp8_configuration", "scenarios"]

BLOCK: Final = 128


def scenarios() -> list[Scenario]:
    return [
        linear_scenario("per tensor", lambda: fp8_configuration(block=False, static=False), _per_tensor),
        linear_scenario("per block", lambda: fp8_configuration(block=True, static=False), _per_block),
    ]


def fp8_configuration(*, block: bool, static: bool) -> Any:
    make = first_upstream("vllm.model_executor.layers.quantization.fp8:Fp8Config")
    return make(
        is_checkpoint_fp8_serialized=True,
        activation_scheme="static" if static else "dynamic",
        weight_block_size=[BLOCK, BLOCK] if block else None,
    )


def _weight(version: int) -> torch.Tensor:
    return random_tensor(OUTPUTS, INPUTS, seed=version, dtype=torch.float8_e4m3fn)


def _per_tensor(version: int) -> dict[str, torch.Tensor]:
    return {"weight": _weight(version), "weight_scale": torch.tensor(0.1 * version, dtype=torch.float32)}


def _per_block(version: int) -> dict[str, torch.Tensor]:
    scale = random_tensor(OUTPUTS // BLOCK, INPUTS // BLOCK, seed=version, dtype=torch.float32).abs()
    return {"weight": _weight(version), "weight_scale_inv": scale}
