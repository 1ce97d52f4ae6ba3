"""Host numbers that run-time code derives from weights when it first needs them: kernels take them by value."""

import torch
from torch import nn


class Method:
    def process_weights_after_loading(self, layer: nn.Module) -> None:
        layer.key_scale_float = layer.key_scale.item()  # error RB202


class Impl:
    def __init__(self, scale: float) -> None:
        self.scale = float(scale)
        self.product: float | None = None
        self.softmax: float | None = None
        self.longest: float | None = None

    def forward(self, layer: nn.Module, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        if self.product is None:
            self.product = self.scale * layer.key_scale_float  # error RB205
        if self.softmax is None:
            self.softmax = self.scale * 2.0
        if self.longest is None:
            self.longest = lengths.max().item()
        return x * self.product * self.softmax * self.longest

    def quantised(self, layer: nn.Module, x: torch.Tensor, out_scale: torch.Tensor | None = None) -> torch.Tensor:
        if layer.out_scale_float is None:
            layer.out_scale_float = out_scale.cpu().item()  # error RB205
        return x * layer.out_scale_float
