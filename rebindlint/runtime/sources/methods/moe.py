"""Unquantised mixture of experts, and what the other kinds of experts share with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from rebindlint.runtime.sources.engine import DTYPE
from rebindlint.runtime.sources.scenario import Scenario, random_tensor
from rebindlint.runtime.sources.upstream import upstream

__all__ = ["EXPERTS", "HIDDEN", "INTERMEDIATE", "moe_scenario", "scenarios"]

EXPERTS: Final = 4
HIDDEN: Final = 256
INTERMEDIATE: Final = 128

Shards = Callable[[str, str, int, int], torch.Tensor]  # parameter, shard (w1, w2, w3), expert, version


def scenarios() -> list[Scenario]:
    return [moe_scenario("", lambda: None, lambda name, shard, expert, version: expert_weight(shard, expert, version))]


def moe_scenario(variant: str, quantisation: Callable[[], Any], shards: Shards) -> Scenario:
    """``shards`` gives what a checkpoint holds for one projection of one expert."""
    return Scenario(
        variant,
        build=lambda: _layer(quantisation()),
        load=lambda layer, version: _load(layer, version, shards),
        process=lambda layer: _hook(layer)(experts_of(layer)),
        hook=_hook,
        step=_step,
    )


def expert_weight(shard: str, expert: int, version: int, dtype: torch.dtype = DTYPE) -> torch.Tensor:
    rows, columns = (HIDDEN, INTERMEDIATE) if shard == "w2" else (INTERMEDIATE, HIDDEN)
    return random_tensor(rows, columns, seed=100 * version + 10 * expert + int(shard[1]), dtype=dtype)


def experts_of(layer: torch.nn.Module) -> Any:
    """The module that holds the experts' weights: the layer itself or one inside it, depending on the release."""
    return next(module for module in layer.modules() if hasattr(module, "w13_weight"))


def _hook(layer: torch.nn.Module) -> Any:
    return experts_of(layer).quant_method.process_weights_after_loading


def _layer(quantisation: Any) -> torch.nn.Module:
    make = upstream("vllm.model_executor.layers.fused_moe.layer", "FusedMoEFactory", "FusedMoE")
    layer: torch.nn.Module = make(
        num_experts=EXPERTS,
        top_k=2,
        hidden_size=HIDDEN,
        intermediate_size=INTERMEDIATE,
        params_dtype=DTYPE,
        quant_config=quantisation,
        prefix="layer",
    )
    return layer


def _load(layer: torch.nn.Module, version: int, shards: Shards) -> None:
    for name, parameter in list(experts_of(layer).named_parameters()):
        for expert in range(EXPERTS):
            for shard in ("w1", "w3") if name.startswith("w13") else ("w2",):
                weight = shards(name, shard, expert, version)
                parameter.weight_loader(parameter, weight, f"experts.{name}", shard_id=shard, expert_id=expert)


def _step(layer: torch.nn.Module) -> Any:
    return layer(torch.zeros(2, HIDDEN, dtype=DTYPE), torch.zeros(2, EXPERTS, dtype=DTYPE))
