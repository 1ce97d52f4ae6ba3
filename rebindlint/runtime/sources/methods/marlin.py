"""GPTQ checkpoints on Marlin kernels: packed weights, scales, group indices."""

from __future__ import annotations

from typing import Any, Final

import torch

from rebindlint.runtime.sources.methods.linear import GROUP, INPUTS, OUTPUTS, linear_scenario
from rebindlint.runtime.sources.scenario import Absent, Scenario, random_tensor
from rebindlint.runtime.sources.upstream import first_upstream

__all__ = ["scenarios"]

_QUANTISATION: Final = "vllm.model_executor.layers.quantization"


def scenarios() -> list[Scenario]:
    return [_scenario(act_order=False), _scenario(act_order=True)]


def _scenario(*, act_order: bool) -> Scenario:
    return linear_scenario(
        "act-order" if act_order else "",
        lambda: _configuration(act_order=act_order),
        lambda version: _weights(version, act_order=act_order),
        kernel="Marlin",
        ignored=() if act_order else ("g_idx",),  # without act-order it says nothing new
    )


def _configuration(*, act_order: bool) -> Any:
    make = first_upstream(
        f"{_QUANTISATION}.auto_gptq:AutoGPTQConfig",
        f"{_QUANTISATION}.gptq_marlin:GPTQMarlinConfig",  # until 0.23
    )
    try:
        return make(
            weight_bits=4,
            group_size=GROUP,
            desc_act=act_order,
            is_sym=True,
            lm_head_quantized=False,
            dynamic={},
            full_config={},
            modules_in_block_to_quantize=["layer"],
        )
    except ValueError as error:
        if act_order and "desc_act" in str(error):
            raise Absent(str(error)) from error
        raise


def _weights(version: int, *, act_order: bool) -> dict[str, torch.Tensor]:
    groups = torch.arange(INPUTS) // GROUP
    if act_order:
        groups = groups[torch.randperm(INPUTS, generator=torch.Generator().manual_seed(version))]
    return {
        "qweight": random_tensor(INPUTS // 8, OUTPUTS, seed=version, dtype=torch.int32),
        "scales": random_tensor(INPUTS // GROUP, OUTPUTS, seed=version),
        "qzeros": random_tensor(INPUTS // GROUP, OUTPUTS // 8, seed=version, dtype=torch.int32),
        "g_idx": groups.int(),
    }
