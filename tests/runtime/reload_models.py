"""Small engines for the tests: a loaded weight, something derived from it, a step that reads both."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.testing._internal.two_tensor import TwoTensor

SIZE = 8
two_tensor: Any = TwoTensor  # a tensor subclass that wraps two others
library: Any = torch.library.Library


def weight(seed: int) -> torch.Tensor:
    return torch.randn(SIZE, SIZE, generator=torch.Generator().manual_seed(seed))


def inputs() -> torch.Tensor:
    return torch.randn(2, SIZE, generator=torch.Generator().manual_seed(99))


def row_of(marker: str, filename: str = __file__) -> int:
    """The line that ends in ``# marker``."""
    rows = [n for n, line in enumerate(Path(filename).read_text().splitlines(), 1) if line.endswith(f"# {marker}")]
    assert len(rows) == 1, f"{marker}: {rows}"
    return rows[0]


class Layer(nn.Module):
    """``derived`` is computed from ``weight`` by a hook that binds once and then copies."""

    derived: torch.Tensor
    kernel: Any
    other: Any

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(SIZE, SIZE), requires_grad=False)
        self.unread = torch.zeros(SIZE)

    def load(self, seed: int) -> Layer:
        self.weight.copy_(weight(seed))
        self.process_weights_after_loading()
        return self

    def process_weights_after_loading(self) -> None:
        if hasattr(self, "derived"):
            self.derived.copy_(self.weight.t())
        else:
            self.derived = self.weight.detach().t().contiguous()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight + x @ self.derived  # reads


class RebindingLayer(Layer):
    def process_weights_after_loading(self) -> None:
        self.derived = self.weight.detach().t().contiguous()  # rebinds attribute


class DataLayer(Layer):
    def load(self, seed: int) -> Layer:
        self.weight.data = weight(seed)  # rebinds data
        self.process_weights_after_loading()
        return self


class ParameterLayer(Layer):
    def load(self, seed: int) -> Layer:
        self.weight = nn.Parameter(weight(seed), requires_grad=False)  # rebinds parameter
        self.process_weights_after_loading()
        return self


class Kernel:
    """No module: holds the derived weight as a kernel object does."""

    def __init__(self, value: torch.Tensor) -> None:
        self.packed = value.t().contiguous()  # binds in kernel


class KernelLayer(Layer):
    """Builds its kernel anew at every load."""

    def process_weights_after_loading(self) -> None:
        self.kernel = Kernel(self.weight.detach())  # rebuilds holder

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        packed: torch.Tensor = self.kernel.packed
        return x @ self.weight + x @ packed


class StaleLayer(Layer):
    """Derives once and never again: every address stays, the values are old."""

    def process_weights_after_loading(self) -> None:
        if not hasattr(self, "derived"):
            self.derived = self.weight.detach().t().contiguous()


class UnreadLayer(Layer):
    """Rebinds something that no step reads."""

    def process_weights_after_loading(self) -> None:
        super().process_weights_after_loading()
        self.unread = torch.ones(SIZE)  # rebinds unread


def load(kind: Callable[[], Layer], seed: int = 1) -> Layer:
    return kind().load(seed)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Parameter(weight(1), requires_grad=False)
        self.head = self.embed

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.embed
