"""Compressed-tensors checkpoints with INT8 weights, one scale a channel, and INT8 activations quantised on the way."""

from __future__ import annotations

from typing import Any

import torch

from rebindlint.runtime.sources.methods.linear import INPUTS, OUTPUTS, linear_scenario
from rebindlint.runtime.sources.scenario import Scenario, random_tensor
from rebindlint.runtime.sources.upstream import first_upstream

__all__ = ["compressed_configuration", "scenarios"]


def scenarios() -> list[Scenario]:
    return [linear_scenario("", _configuration, _weights)]


def compressed_configuration(layout: str, weights: dict[str, Any], inputs: dict[str, Any] | None) -> Any:
    """What the release makes of the quantisation section of a compressed-tensors checkpoint; ``layout`` is its format."""
    make = first_upstream(
        "vllm.model_executor.layers.quantization.compressed_tensors.compressed_tensors:CompressedTensorsConfig"
    )
    return make.from_config(
        {
            "quant_method": "compressed-tensors",
            "format": layout,
            "ignore": [],
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": inputs}},
        }
    )


def _configuration() -> Any:
    weights = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel", "dynamic": False}
    inputs = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "token", "dynamic": True}
    return compressed_configuration("int-quantized", weights, inputs)


def _weights(version: int) -> dict[str, torch.Tensor]:
    return {
        "weight": random_tensor(OUTPUTS, INPUTS, seed=version, dtype=torch.int8),
        "weight_scale": random_tensor(OUTPUTS, 1, seed=version, dtype=torch.float32).abs(),
    }
