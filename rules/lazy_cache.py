"""## What it does

Reports run-time code (`forward`, `apply`, what they call) that derives a tensor or a host number from weights when it is first needed, behind a guard (`is None`, `hasattr`, `getattr(..., None)`, a flag,
`in` or `.get` of a dictionary), and that no hook refreshes. Where loading only sets it to None, eager code builds it again, but not a captured graph.

## Why is this bad?

The first step after loading builds the tensor, and every later one finds it there. New weights do not change that: graph and eager code alike go on with the first ones. If the first step is the one
being captured, the tensor moreover lies in that graph's own memory pool, which other graphs may share.

## Example

```python
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, 3), requires_grad=False)
        self.transposed: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.transposed is None:
            self.transposed = self.weight.t().contiguous()
        return x @ self.transposed
```

## Use instead

```python
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, 3), requires_grad=False)
        self.transposed: torch.Tensor | None = None

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        if self.transposed is None:
            self.transposed = self.weight.t().contiguous()
        else:
            self.transposed.copy_(self.weight.t())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.transposed
```

## Fix safety

No automatic fix: which hook runs for the object, and when, has to be found first. Setting the attribute to None in a hook makes eager code build the tensor again, but a captured graph keeps reading the old memory,
which nothing owns any more (`RB106`).

## See also

`RB204` for the same guard in a hook. The [hazard model](../hazard-model.md) says what a cell, a visible cell and a reload protocol are.
"""

from __future__ import annotations

from rebindlint.model import Hazard, Rebinding
from rebindlint.plugin import Rule


class LazyCache(Rule):
    code = "RB205"
    name = "lazy-cache"

    def owns(self, fact: Rebinding) -> bool:
        return fact.lazy

    def message(self, fact: Rebinding) -> str:
        if fact.hazard is Hazard.ADDRESS:
            return f"`{fact.cell.path}` is derived from weights when `{fact.hook}` first needs it; loading drops it, and it is then built in other memory, while a captured graph keeps the former"
        return f"`{fact.cell.path}` is derived from weights when `{fact.hook}` first needs it and never again; after a reload graph and eager code keep the first weights"

    def advice(self, fact: Rebinding) -> str:
        return "build it in `process_weights_after_loading` and `copy_` into it when that runs again (to set it to None there would take its memory from a captured graph)"
