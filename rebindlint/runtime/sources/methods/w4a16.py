"""Compressed-tensors checkpoints with packed INT4 weights, one scale a group, on Marlin kernels."""

from __future__ import annotations

from typing import Any

import torch

from rebindlint.runtime.sources.methods.linear import GROUP, INPUTS, OUTPUTS, linear_scenario
from rebindlint.runtime.sources.methods.w8a8_int8 import compressed_configuration
from rebindlint.runtime.sources.scenario import Scenario, random_tensor

__all__ = ["scenarios"]


def scenarios() -> list[Scenario]:
    return [linear_scenario("", _configuration, _weights, kernel="Marlin")]


def _configuration() -> Any:
    weights = {
        "num_bits": 4,
        "type": "int",
        "symmetric": True,
        "strategy": "group",
        "group_size": GROUP,
        "dynamic": False,
    }
    return compressed_configuration("pack-quantized", weights, None)


def _weights(version: int) -> dict[str, torch.Tensor]:
    return {
        "weight_packed": random_tensor(OUTPUTS, INPUTS // 8, seed=version, dtype=torch.int32),
        "weight_scale": random_tensor(OUTPUTS, INPUTS // GROUP, seed=version),
        "weight_shape": torch.tensor([OUTPUTS, INPUTS], dtype=torch.int64),
    }
