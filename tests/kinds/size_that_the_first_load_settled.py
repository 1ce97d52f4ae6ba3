"""Memory that is made where a size differs from what is asked for fits from then on; what no size settles is made anew."""

import torch
from torch import nn


class Positions(nn.Module):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(rows, 8))
        self.angles: torch.Tensor | None = None
        self.steps: torch.Tensor | None = None
        self.halves: torch.Tensor | None = None

    def reserve(self, rows: int) -> None:
        if self.angles is None or self.angles.shape[0] < rows:
            self.angles = torch.outer(torch.arange(rows), torch.arange(8))

    def fitting(self, rows: int) -> torch.Tensor:
        if self.steps is not None and self.steps.shape[0] >= rows:
            return self.steps
        self.steps = torch.outer(torch.arange(rows), torch.arange(4))
        return self.steps

    def forward(self, x):
        return x + self.table + self.angles + self.steps + self.halves


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.positions = Positions(4)

    def load_weights(self, weights):
        for name, loaded in weights:
            if "table" in name:
                table = self.positions.table
                if table.shape != loaded.shape:
                    table.data = table.data.new_empty(loaded.shape)
                table.data.copy_(loaded)
        self.positions.reserve(4)
        self.positions.fitting(4)
        self.positions.halves = torch.outer(torch.arange(4), torch.arange(2))  # error RB101

    def forward(self, x):
        return self.positions(x)
