"""FP8 checkpoints on Marlin kernels, which GPUs without FP8 arithmetic use: linear layers and experts."""

from __future__ import annotations

from dataclasses import replace

from rebindlint.runtime.sources.methods import fp8, fp8_moe
from rebindlint.runtime.sources.scenario import Scenario

__all__ = ["scenarios"]


def scenarios() -> list[Scenario]:
    return [
        replace(scenario, variant=f"{kind}, {scenario.variant}", kernel="Marlin")
        for kind, found in (("linear", fp8.scenarios()), ("experts", fp8_moe.scenarios()))
        for scenario in found
    ]
