"""Silent where a hook pads what is not aligned yet: the second run finds it aligned. What it pads into something else is new each time."""

import torch
import torch.nn.functional as F
from torch import nn


def pad_rows(weight: torch.Tensor, alignment: int = 32) -> torch.Tensor:
    rows = weight.shape[0]
    if rows % alignment != 0:
        weight = F.pad(weight, (0, 0, 0, -rows % alignment)).contiguous()
    missing = -weight.shape[1] % alignment
    if missing > 0:
        weight = F.pad(weight, (0, missing))
    return weight


class PaddedMethod:
    def process_weights_after_loading(self, layer: nn.Module) -> None:
        layer.weight = nn.Parameter(pad_rows(layer.weight.data), requires_grad=False)

    def apply(self, layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x @ layer.weight


class PaddedInPlaceMethod:
    def process_weights_after_loading(self, layer: nn.Module) -> None:
        if layer.weight.shape[0] % 16 != 0:
            layer.weight = nn.Parameter(F.pad(layer.weight.data, (0, 0, 0, 8)), requires_grad=False)

    def apply(self, layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x @ layer.weight


class PaddedAndShuffledMethod:
    def process_weights_after_loading(self, layer: nn.Module) -> None:
        layer.weight = nn.Parameter(pad_rows(layer.weight.data).flip(0), requires_grad=False)  # warning RB103

    def apply(self, layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x @ layer.weight


class AlwaysPaddedMethod:
    def __init__(self, pads: bool) -> None:
        self.pads = pads

    def process_weights_after_loading(self, layer: nn.Module) -> None:
        if self.pads:
            layer.weight = nn.Parameter(F.pad(layer.weight.data, (0, 16)), requires_grad=False)  # warning RB103

    def apply(self, layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x @ layer.weight
