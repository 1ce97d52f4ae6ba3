"""## What it does

Reports a tensor that the second run transforms although it shows what the first run had already transformed: a scale folded twice, a buffer negated again.

## Why is this bad?

The address is right and the contents are fresh, but they are not what the first run left: the transformation was applied on top of itself.

## Example

```python
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.register_buffer("decay", torch.ones(8))

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        self.decay.mul_(self.weight.sum())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.decay
```

## Use instead

```python
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.register_buffer("decay", torch.ones(8))

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        self.decay.fill_(1.0)
        self.decay.mul_(self.weight.sum())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.decay
```

## Fix safety

No automatic fix: the message says what is transformed twice.

## See also

The [hazard model](../hazard-model.md) says what a cell, a visible cell and a reload protocol are.
"""

from __future__ import annotations

from rebindlint.model import Rebinding
from rebindlint.plugin import Rule


class NonIdempotent(Rule):
    code = "RB301"
    name = "non-idempotent"

    def owns(self, fact: Rebinding) -> bool:
        return fact.retransformed and not fact.overlapping and not fact.prefer_copy_unsupported

    def message(self, fact: Rebinding) -> str:
        return f"`{fact.cell.path}` is transformed again each time `{fact.hook}` runs, on top of what the run before left in it"

    def advice(self, fact: Rebinding) -> str:
        return "start from the source each time, not from what the last run left"
