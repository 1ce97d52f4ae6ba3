"""## What it does

Reports a hook that replaces a parameter under one of several names or modules that it is registered under (tied weights), so that the others keep the memory from before.

## Why is this bad?

Tied parameters are loaded once: a checkpoint has the weight under one of the names. After the hook the names stand for two tensors, so what is loaded under one no longer reaches the other, and twice
the memory is taken. After a reload the layer whose name is not in the checkpoint computes with the first weights, or with a tensor that a captured graph does not know.

## Example

```python
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.zeros(3, 3), requires_grad=False)
        self.head = self.embedding

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        self.head = nn.Parameter(self.head.clamp(min=0), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.embedding @ self.head
```

## Use instead

```python
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.zeros(3, 3), requires_grad=False)
        self.head = self.embedding

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        self.head.data.copy_(self.head.clamp(min=0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.embedding @ self.head
```

## Fix safety

No automatic fix: whether both layers want the new layout, or one of them needs a copy of its own that is refreshed from the other, only the code's author knows.

## See also

`RB103` for parameters that have one name. The [hazard model](../hazard-model.md) says what a cell, a visible cell and a reload protocol are.
"""

from __future__ import annotations

from rebindlint.model import Rebinding
from rebindlint.plugin import Rule


class SharedParameter(Rule):
    code = "RB303"
    name = "shared-parameter"

    def owns(self, fact: Rebinding) -> bool:
        return fact.shared

    def message(self, fact: Rebinding) -> str:
        return f"`{fact.cell.path}` is a tied parameter, and `{fact.hook}` replaces it under this name only; its other name keeps the old memory, and what is loaded there no longer arrives here"

    def advice(self, fact: Rebinding) -> str:
        return "write into the parameter in place, or keep the result under a name of its own and `copy_` into it from the tied parameter each time"
