"""Silent: what run-time code keeps is made of sizes, constants and inputs."""

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, 3))
        self.masks: dict[int, torch.Tensor] = {}
        self.angles = dict()
        self.ones: torch.Tensor | None = None
        self.is_ready = False
        self.first: torch.Tensor | None = None
        self.last: torch.Tensor | None = None

    def mask(self, size: int) -> torch.Tensor:
        kept = self.masks.get(size)
        if kept is None:
            kept = torch.ones(size, size, dtype=self.weight.dtype, device=self.weight.device).tril()
            self.masks[size] = kept
        return kept

    def angle(self, size: int) -> torch.Tensor:
        if size not in self.angles:
            self.angles[size] = torch.arange(size, device=self.weight.device) / self.weight.shape[0]
        return self.angles[size]

    def bounds(self, x: torch.Tensor) -> None:
        if self.first is not None or self.weight.shape[0] < 2:
            return
        self.first, self.last = x[:1] * 2, x[-1:] * 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.is_ready:
            self.ones = torch.ones_like(self.weight)
            self.is_ready = True
        self.bounds(x)
        return x @ self.weight + self.mask(3) + self.angle(3) + self.ones + self.first + self.last


def scale_of_a_table(tables: dict[float, torch.Tensor], layer: nn.Module) -> torch.Tensor:
    return tables[layer.weight.shape[0]]
