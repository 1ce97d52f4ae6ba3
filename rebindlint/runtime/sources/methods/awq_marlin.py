"""AWQ checkpoints on Marlin kernels: packed weights, scales, packed zero points."""

from __future__ import annotations

from typing import Any, Final

import torch

from rebindlint.runtime.sources.methods.linear import GROUP, INPUTS, OUTPUTS, linear_scenario
from rebindlint.runtime.sources.scenario import Scenario, random_tensor
from rebindlint.runtime.sources.upstream import first_upstream

__all__ = ["scenarios"]

_QUANTISATION: Final = "vllm.model_executor.layers.quantization"


def scenarios() -> list[Scenario]:
    return [linear_scenario("", _configuration, _weights, kernel="Marlin")]


def _configuration() -> Any:
    make = first_upstream(
        f"{_QUANTISATION}.auto_awq:AutoAWQConfig",
        f"{_QUANTISATION}.awq_marlin:AWQMarlinConfig",  # until 0.23
    )
    return make(
        weight_bits=4,
        group_size=GROUP,
        zero_point=True,
        lm_head_quantized=False,
        modules_to_not_convert=None,
        full_config={},
    )


def _weights(version: int) -> dict[str, torch.Tensor]:
    return {
        "qweight": random_tensor(INPUTS, OUTPUTS // 8, seed=version, dtype=torch.int32),
        "scales": random_tensor(INPUTS // GROUP, OUTPUTS, seed=version),
        "qzeros": random_tensor(INPUTS // GROUP, OUTPUTS // 8, seed=version, dtype=torch.int32),
    }
