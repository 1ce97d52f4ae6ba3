"""How hooks put a processed weight where the loaded one stands."""

import torch
from torch import nn


def replace_parameter(layer: nn.Module, name: str, value: torch.Tensor, prefer_copy: bool = False) -> None:
    """Make ``value`` the parameter ``layer.name``.

    With ``prefer_copy`` the values go into the storage that is there already, when shape, dtype and device agree.
    """
    value = value.detach()
    old = getattr(layer, name, None)
    if prefer_copy and isinstance(old, torch.Tensor) and _agree(old, value):
        old.data.copy_(value)
        return
    if hasattr(layer, name):
        delattr(layer, name)
    layer.register_parameter(name, nn.Parameter(value, requires_grad=False))


def _agree(old: torch.Tensor, new: torch.Tensor) -> bool:
    return old.shape == new.shape and old.dtype == new.dtype and old.device == new.device
