"""Names of attributes: which one a value names, and what an attribute holds by its name alone."""

from __future__ import annotations

import re

from rebindlint.execution.values import Const, Value, label_of

__all__ = ["attribute_name", "names_no_module", "names_weight"]

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


def attribute_name(value: Value) -> str:
    """The attribute's name; a computed one stands as its expression in braces."""
    if isinstance(value, Const) and isinstance(value.value, str):
        return value.value
    return f"{{{label_of(value)}}}"
