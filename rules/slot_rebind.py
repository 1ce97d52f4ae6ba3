"""## What it does

Reports a slot of a dictionary, list or `_parameters` that the second run fills with another tensor.

## Why is this bad?

A CUDA graph remembers tensors by address. After the reload the attribute shows the new tensor, eager code is right, and the graph goes on reading the old
memory: stale weights or, once the allocator has given that memory away, garbage. Nothing raises. Slots are as visible as attributes when run-time code reads the container.

## Example

```python
import torch


class Kernel:
    def __init__(self) -> None:
        self.tables = {}

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        self.tables["scale"] = layer.weight_scale * 2.0

    def apply(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.tables["scale"]
```

## Use instead

```python
import torch


class Kernel:
    def __init__(self) -> None:
        self.tables = {}

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        if "scale" in self.tables:
            self.tables["scale"].copy_(layer.weight_scale * 2.0)
        else:
            self.tables["scale"] = layer.weight_scale * 2.0

    def apply(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.tables["scale"]
```

## Fix safety

Safe for a dictionary: bound once, copied into afterwards. No fix for other slots.

## See also

`RB101` for attributes. The [hazard model](../hazard-model.md) says what a cell, a visible cell and a reload protocol are.
"""

from __future__ import annotations

from rebindlint.model import Binding, Hazard, Rebinding
from rebindlint.plugin import Rule


class SlotRebind(Rule):
    code = "RB105"
    name = "slot-rebind"

    def owns(self, fact: Rebinding) -> bool:
        if fact.retransformed or fact.overlapping or fact.prefer_copy_unsupported:
            return False
        return fact.hazard is Hazard.ADDRESS and fact.binding is Binding.SLOT

    def message(self, fact: Rebinding) -> str:
        return f"`{fact.cell.path}` is filled with a new tensor each time `{fact.hook}` runs; a captured graph keeps reading the old one"

    def advice(self, fact: Rebinding) -> str:
        return "fill the slot once and `copy_` into its tensor afterwards"
