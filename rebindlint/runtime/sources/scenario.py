"""One layer of one quantisation method: how it is built, loaded, processed and stepped. The methods make these."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["Absent", "OneLayer", "Scenario", "load_parameters", "random_tensor"]


class Absent(Exception):
    """The release has no such method or variant; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """``load`` puts the weights of one version (1 or 2) into the layer through its own weight loaders, as a checkpoint
    would; ``process`` runs the post-load hooks; ``step`` runs the layer once, as far as stand-ins carry it.
    """

    variant: str
    build: Callable[[], torch.nn.Module]
    load: Callable[[torch.nn.Module, int], None]
    process: Callable[[torch.nn.Module], None]
    hook: Callable[[torch.nn.Module], Any]  # the post-load hook, for reports
    step: Callable[[torch.nn.Module], Any] | None = None
    kernel: str = ""  # what the release must choose, as a part of a class name; "" when any will do


class OneLayer(torch.nn.Module):
    """The model around the layer: the reload works on models."""

    def __init__(self, layer: torch.nn.Module) -> None:
        super().__init__()
        self.layer = layer


def load_parameters(layer: torch.nn.Module, weights: dict[str, torch.Tensor], *, ignored: Collection[str] = ()) -> None:
    """Each weight through its parameter's own loader. Raises KeyError for a name that the layer does not have, unless it
    is one of those that a release may ignore.
    """
    for name, weight in weights.items():
        parameters: dict[str, Any] = dict(layer.named_parameters())
        if name not in parameters and name in ignored:
            continue
        parameter = parameters[name]
        loader = getattr(parameter, "weight_loader", None)
        if loader is None:
            parameter.data.copy_(weight)
        else:
            loader(parameter, weight)


def random_tensor(*shape: int, seed: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    """The same numbers for the same seed; integers fill their whole range."""
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(dtype)
    return torch.randint(-(2**31), 2**31 - 1, shape, generator=generator, dtype=torch.int64).to(dtype)
