"""What an attribute holds, judged by its name alone."""

from __future__ import annotations

import re

__all__ = ["names_no_module", "names_weight"]

_WEIGHT = re.compile(r"(?:^|_)(?:q?weights?|scales?|bias|q?zeros|zero_points?)(?:_inv|_packed|_\d)?$")
_NO_MODULE = (
    "quant_method",
    "quant_config",
    "config",
    "scheme",
    "kernel",
    "impl",
    "backend",
    "method",
    "experts_cls",
    "moe_kernel",
)


def names_weight(name: str) -> bool:
    """Whether a module has a weight under that name, by how weights are called."""
    return bool(_WEIGHT.search(name))


def names_no_module(name: str) -> bool:
    """Attributes that by their name hold something that is no ``nn.Module``."""
    return name.endswith(_NO_MODULE)
