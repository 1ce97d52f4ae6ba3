"""The engine's modules build something of a weight in methods that nothing calls; what calls the others is not always plain to see."""

import torch
from engine.layers import Base
from torch import nn


class Fold(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, 3))
        self.left_fold = self.named_fold = self.marked_fold = self.right_fold = None

    def fold_left_over(self) -> torch.Tensor:
        if self.left_fold is None:
            self.left_fold = self.weight.t().contiguous()
        return self.left_fold

    def fold_by_name(self) -> torch.Tensor:
        if self.named_fold is None:  # error RB205
            self.named_fold = self.weight.t().contiguous()
        return self.named_fold

    @torch.library.register_fake("lib::fold")
    def fold_when_asked(self) -> torch.Tensor:
        if self.marked_fold is None:  # error RB205
            self.marked_fold = self.weight.t().contiguous()
        return self.marked_fold

    def fold_for_forward(self) -> torch.Tensor:
        if self.right_fold is None:  # error RB205
            self.right_fold = self.weight.t().contiguous()
        return self.right_fold

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.fold_for_forward()


class Derived(Base):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, 3))
        self.kept_fold = None

    def fold_for_the_base(self) -> torch.Tensor:
        if self.kept_fold is None:  # error RB205
            self.kept_fold = self.weight.t().contiguous()
        return self.kept_fold


class Chosen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, 3))
        self.tall_fold = None

    def fold_tall(self) -> torch.Tensor:
        if self.tall_fold is None:  # error RB205
            self.tall_fold = self.weight.t().contiguous()
        return self.tall_fold

    def forward(self, x: torch.Tensor, shape: str) -> torch.Tensor:
        return x @ getattr(self, f"fold_{shape}")()


FOLDS = ["fold_by_name"]
