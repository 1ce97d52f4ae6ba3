"""## What it does

Reports a host number that the hook reads out of a weight (`.item()`, `float(t)`, `.tolist()`) and keeps in an attribute which run-time code reads.

## Why is this bad?

A CUDA graph remembers tensors by address, and numbers by value: the one of the time of capture is part of the recorded kernel launch. The hook reads a new number after the reload, eager code
uses it, and the graph goes on with the old one. Code that was compiled with the number as a constant does the same.

## Example

```python
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()), requires_grad=False)
        self.factor = 1.0

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        self.factor = self.scale.item()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor
```

## Use instead

```python
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale
```

## Fix safety

No automatic fix: whether the kernel can read the number from device memory is a property of the kernel. Where it cannot, the graphs have to be captured again after a reload that changed the number.

## See also

`RB204` for tensors that keep showing the first weights. The [hazard model](../hazard-model.md) says what a cell, a visible cell and a reload protocol are.
"""

from __future__ import annotations

from rebindlint.model import Binding, Rebinding
from rebindlint.plugin import Rule


class BakedScalar(Rule):
    code = "RB202"
    name = "baked-scalar"

    def owns(self, fact: Rebinding) -> bool:
        return fact.binding is Binding.SCALAR

    def message(self, fact: Rebinding) -> str:
        return f"`{fact.cell.path}` is a number that `{fact.hook}` reads from a weight; a captured graph has it by value and keeps the first one"

    def advice(self, fact: Rebinding) -> str:
        return "keep the tensor and let the kernel read it, or capture again after the reload"
