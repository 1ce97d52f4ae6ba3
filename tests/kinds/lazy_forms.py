"""Run-time code that builds something of a weight when it is first needed: the guard may have many forms."""

import torch
from torch import nn


def folded(layer: nn.Module) -> torch.Tensor:
    return layer.weight.t().contiguous()


class LocalName(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, 3))
        self.local_fold: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = self.local_fold
        if kept is None:  # error RB205
            kept = folded(self)
            self.local_fold = kept
        return x @ kept


class Walrus(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, 3))
        self.walrus_fold: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if (kept := self.walrus_fold) is None:  # error RB205
            kept = self.walrus_fold = self.weight.t().contiguous()
        return x @ kept


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, 3))
        self.upper: torch.Tensor | None = None
        self.lower: torch.Tensor | None = None

    def split(self) -> None:
        if (
            self.upper is not None  # error RB205
            or not self.weight.is_cuda
        ):
            return
        self.upper, self.lower = self.weight[:1] * 2, self.weight[1:] * 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.split()
        return x @ torch.cat([self.upper, self.lower])


class Flag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, 3))
        self.flag_fold: torch.Tensor | None = None
        self.is_folded = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.is_folded:  # error RB205
            self.flag_fold = self.weight.t().contiguous()
            self.is_folded = True
        return x @ self.flag_fold


class BehindConditions(nn.Module):
    def __init__(self, is_fast: bool, is_wide: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, 3))
        self.is_fast, self.is_wide = is_fast, is_wide
        self.deep_fold: torch.Tensor | None = None
        self.enabled = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.enabled:
            return x @ self.weight
        if self.is_fast and x.is_cuda and x.dtype in (torch.bfloat16, torch.float16) and x.shape[0] <= 24:
            if self.deep_fold is None:  # error RB205
                self.deep_fold = self.weight.t().contiguous()
            return x @ self.deep_fold
        return x


class Table(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, 3))
        self.by_size = dict()
        self.by_pair: dict[tuple[int, int], torch.Tensor] = {}

    def resized(self, height: int, width: int) -> torch.Tensor:
        return nn.functional.interpolate(self.weight[None, None], size=(height, width))

    def forward(self, height: int, width: int) -> torch.Tensor:
        key = (height, width)
        if key in self.by_size:  # error RB205
            return self.by_size[key]
        made = self.resized(height, width) + self.other(height, width)
        self.by_size[key] = made
        return made

    def other(self, height: int, width: int) -> torch.Tensor:
        kept = self.by_pair.get((height, width))
        if kept is None:  # error RB205
            kept = self.by_pair[(height, width)] = self.resized(height, width)
        return kept


class Bare:
    """Functions are put into the place of its methods."""


def installed_forward(self, x: torch.Tensor) -> torch.Tensor:
    if self.installed_fold is None:  # error RB205
        self.installed_fold = (self.weight * 2, self.bias * 2)
    return x @ self.installed_fold[0] + self.installed_fold[1]


def install(obj: Bare) -> None:
    obj.forward = installed_forward.__get__(obj)
