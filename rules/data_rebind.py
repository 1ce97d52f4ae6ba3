"""## What it does

Reports `p.data = new` (and `p.set_(new)`) on a captured tensor: the object stays, the memory under it moves.

## Why is this bad?

A CUDA graph remembers tensors by address. After the reload the attribute shows the new tensor, eager code is right, and the graph goes on reading the old
memory: stale weights or, once the allocator has given that memory away, garbage. Nothing raises. That the parameter is still the same Python object hides the move from every
check that compares objects.

## Example

```python
import torch


class Method:
    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        layer.weight.data = layer.weight.data.t().contiguous()

    def apply(self, layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x @ layer.weight
```

## Use instead

```python
import torch


class Method:
    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        layer.weight.data = layer.weight.data.view(-1, 16)

    def apply(self, layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x @ layer.weight
```

## Fix safety

The statement becomes a call of the tree's replace helper, or a `copy_` where shape, strides, dtype and device agree. Safe where shape and dtype provably agree on a reload, else unsafe. Not offered where the value is a
transposition of the parameter itself (of another shape, unless it is square), or is in a format that shape and strides do not tell.

## See also

`RB104` for the helper itself. The [hazard model](../hazard-model.md) says what a cell, a visible cell and a reload protocol are.
"""

from __future__ import annotations

from rebindlint.model import Binding, Hazard, Rebinding
from rebindlint.plugin import Rule


class DataRebind(Rule):
    code = "RB102"
    name = "data-rebind"

    def owns(self, fact: Rebinding) -> bool:
        if fact.retransformed or fact.overlapping or fact.prefer_copy_unsupported:
            return False
        return fact.hazard is Hazard.ADDRESS and fact.binding is Binding.DATA

    def message(self, fact: Rebinding) -> str:
        return f"`{fact.cell.path}` gets other memory under it each time `{fact.hook}` runs; a captured graph keeps reading the old memory"

    def advice(self, fact: Rebinding) -> str:
        return "copy into the memory that is there already, or hand the tensor to the tree's replace helper"
