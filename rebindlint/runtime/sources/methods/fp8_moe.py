"""FP8 mixture of experts from FP8 checkpoints, one scale a tensor and one a block of 128 by 128."""

from __future__ import annotations

import torch

from rebindlint.runtime.sources.methods.fp8 import BLOCK, fp8_configuration
from rebindlint.runtime.sources.methods.moe import HIDDEN, INTERMEDIATE, expert_weight, moe_scenario
from rebindlint.runtime.sources.scenario import Scenario

__all__ = ["scenarios"]


def scenarios() -> list[Scenario]:
    return [
        moe_scenario("per tensor", lambda: fp8_configuration(block=False, static=True), _per_tensor),
        moe_scenario("per block", lambda: fp8_configuration(block=True, static=False), _per_block),
    ]


def _per_tensor(name: str, shard: str, expert: int, version: int) -> torch.Tensor:
    if name.endswith("scale"):
        return torch.tensor(0.01 * (version + 1), dtype=torch.float32)
    return expert_weight(shard, expert, version, torch.float8_e4m3fn)


def _per_block(name: str, shard: str, expert: int, version: int) -> torch.Tensor:
    if "scale" in name:
        rows, columns = (HIDDEN, INTERMEDIATE) if shard == "w2" else (INTERMEDIATE, HIDDEN)
        return torch.full((rows // BLOCK, columns // BLOCK), 0.01 * (version + 1), dtype=torch.float32)
    return expert_weight(shard, expert, version, torch.float8_e4m3fn)
