"""Loading sets back what run-time code built: eager code builds it again, a captured graph has the former memory."""

from collections.abc import Iterable

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(3, 3)
        self.full_head: torch.Tensor | None = None
        self.positions: torch.Tensor | None = None

    def whole(self) -> torch.Tensor:
        if self.full_head is None:
            self.full_head = self.head.weight.t().contiguous()  # error RB205
        return self.full_head

    def places(self, x: torch.Tensor) -> torch.Tensor:
        if self.positions is None:
            self.positions = torch.arange(x.shape[0], device=self.head.weight.device)
        return self.positions

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.whole() + self.places(x)

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> None:
        self.full_head = None
        self.positions = None
        for _, weight in weights:
            self.head.weight.data.copy_(weight)
