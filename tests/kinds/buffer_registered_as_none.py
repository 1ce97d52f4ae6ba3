"""A tensor assigned to a buffer that was registered as None is a buffer. Layerwise deletes it before the hook, which then leaves a
plain attribute: the buffer cannot be put back over that, so the reload raises.
"""

import torch
from torch import nn


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(4, 4))
        self.register_buffer("packed", None, persistent=False)

    def prepare_shared(self) -> None:
        self.packed = self.weight.t().contiguous()  # warning RB101

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.packed


class Method:
    def process_weights_after_loading(self, layer: Shared) -> None:
        layer.prepare_shared()

    def apply(self, layer: Shared, x: torch.Tensor) -> torch.Tensor:
        return layer(x)
