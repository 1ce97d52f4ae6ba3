"""## What it does

Reports an argument (such as `prefer_copy`) that is passed to the tree's replace helper although the helper of this tree does not take it.

## Why is this bad?

The call raises `TypeError` when the hook runs, in production and not before: releases differ in what their helper takes.

## Example

```python
import torch
from torch.nn import Parameter


def replace_parameter(layer: torch.nn.Module, name: str, new: torch.Tensor) -> None:
    old = getattr(layer, name, None)
    if old is not None and old.shape == new.shape:
        old.data.copy_(new)
        return
    setattr(layer, name, Parameter(new, requires_grad=False))


class Method:
    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        replace_parameter(layer, "weight", layer.weight * 2, prefer_copy=True)

    def apply(self, layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x @ layer.weight
```

## Use instead

```python
import torch
from torch.nn import Parameter


def replace_parameter(layer: torch.nn.Module, name: str, new: torch.Tensor) -> None:
    old = getattr(layer, name, None)
    if old is not None and old.shape == new.shape:
        old.data.copy_(new)
        return
    setattr(layer, name, Parameter(new, requires_grad=False))


class Method:
    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        replace_parameter(layer, "weight", layer.weight * 2)

    def apply(self, layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x @ layer.weight
```

## Fix safety

Safe: the argument is dropped where the helper copies by itself; otherwise no fix.

## See also

`RB104`. The [hazard model](../hazard-model.md) says what a cell, a visible cell and a reload protocol are.
"""

from __future__ import annotations

from rebindlint.model import Rebinding
from rebindlint.plugin import Rule


class UnsupportedArgument(Rule):
    code = "RB304"
    name = "unsupported-argument"

    def owns(self, fact: Rebinding) -> bool:
        return fact.prefer_copy_unsupported

    def message(self, fact: Rebinding) -> str:
        helper = fact.helper.function if fact.helper is not None else "the replace helper"
        return f"`{helper}` of this tree does not take `prefer_copy`: the call raises `TypeError`"

    def advice(self, fact: Rebinding) -> str:
        return "drop the argument"
