"""What the linear methods share: one layer of one shape, its weights put in as a checkpoint would."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

import torch

from rebindlint.runtime.sources.engine import DTYPE
from rebindlint.runtime.sources.scenario import Scenario, load_parameters
from rebindlint.runtime.sources.upstream import upstream

__all__ = ["GROUP", "INPUTS", "OUTPUTS", "linear_scenario"]

INPUTS: Final = 256
OUTPUTS: Final = 512
GROUP: Final = 128

Weights = Callable[[int], dict[str, torch.Tensor]]


def linear_scenario(
    variant: str,
    quantisation: Callable[[], Any],
    weights: Weights,
    *,
    kernel: str = "",
    ignored: Collection[str] = (),
) -> Scenario:
    """``quantisation`` makes the release's configuration; ``weights`` the tensors of one version of the checkpoint, of
    which the release may have no use for the ``ignored`` ones.
    """
    return Scenario(
        variant,
        build=lambda: _layer(quantisation()),
        load=lambda layer, version: load_parameters(layer, weights(version), ignored=ignored),
        process=lambda layer: _method(layer).process_weights_after_loading(layer),
        hook=lambda layer: _method(layer).process_weights_after_loading,
        step=lambda layer: layer(torch.zeros(2, INPUTS, dtype=DTYPE)),
        kernel=kernel,
    )


def _method(layer: torch.nn.Module) -> Any:
    return layer.quant_method


def _layer(quantisation: Any) -> torch.nn.Module:
    layer: torch.nn.Module = upstream("vllm.model_executor.layers.linear").ReplicatedLinear(
        INPUTS, OUTPUTS, bias=False, quant_config=quantisation, params_dtype=DTYPE, prefix="layer"
    )
    if type(layer.quant_method).__name__ == "UnquantizedLinearMethod":
        raise RuntimeError("the release takes the layer for one that is not quantised")
    return layer
