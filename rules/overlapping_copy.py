"""## What it does

Reports `x.copy_(v)` where `v` shows the memory of `x` in another order (a transpose, a permutation): the copy reads what it overwrites. Calls of a replace helper that copies count too.

## Why is this bad?

Which elements are read before and which after they were overwritten depends on the kernel. The result is neither the old nor the new tensor.

## Example

```python
import torch


class Method:
    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        layer.weight.data.copy_(layer.weight.data.t())

    def apply(self, layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x @ layer.weight
```

## Use instead

```python
import torch


class Method:
    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        layer.weight.data.copy_(layer.weight.data.t().clone())

    def apply(self, layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x @ layer.weight
```

## Fix safety

`.clone()` is put between. Unsafe: it gives the values that the statement spells out, which differ from what it did before.

## See also

The [hazard model](../hazard-model.md) says what a cell, a visible cell and a reload protocol are.
"""

from __future__ import annotations

from rebindlint.model import Rebinding
from rebindlint.plugin import Rule


class OverlappingCopy(Rule):
    code = "RB302"
    name = "overlapping-copy"

    def owns(self, fact: Rebinding) -> bool:
        return fact.overlapping and not fact.prefer_copy_unsupported

    def message(self, fact: Rebinding) -> str:
        return f"`{fact.cell.path}` is copied from another view of its own memory; the copy reads what it overwrites"

    def advice(self, fact: Rebinding) -> str:
        return "put a `.clone()` in front of the copy"
