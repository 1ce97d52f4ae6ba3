"""Run-time code makes a workspace when it first needs one; a hook that drops it takes it from a captured graph."""

import torch


class Method:
    def __init__(self) -> None:
        self.rows: torch.Tensor | None = None
        self.ones: torch.Tensor | None = None
        self.host_order: list[int] | None = None
        self.kept: torch.Tensor | None = None

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        self.rows = None  # error RB106
        if self.ones is not None:
            self.ones = None  # error RB106
        self.host_order = None
        if self.kept is not None:
            self.kept.zero_()

    def rows_for(self, count: int) -> torch.Tensor:
        rows = self.rows
        if rows is None or rows.shape[0] < count:
            rows = torch.empty((count,), dtype=torch.int32)
            self.rows = rows
        return rows[:count]

    def apply(self, layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        if self.ones is None:
            self.ones = torch.ones_like(x)
        if self.kept is None:
            self.kept = torch.zeros_like(x)
        if self.host_order is None:
            self.host_order = sorted(range(x.dim()))
        return x * self.ones + self.kept + self.rows_for(len(self.host_order))
