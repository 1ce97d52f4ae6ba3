"""## What it does

Reports a captured tensor that the second run deletes, sets to None or leaves out, so that nothing owns its memory any more.

## Why is this bad?

A CUDA graph does not keep tensors alive. Once the last owner is gone the allocator hands the memory to somebody else, and the graph reads and writes there.

## Example

```python
import torch


class Impl:
    def __init__(self, scale: torch.Tensor) -> None:
        self.scale = scale
        self.table: torch.Tensor | None = None

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        if self.table is not None:
            self.table = None
        else:
            self.table = self.scale * 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if self.table is None else x * self.table
```

## Use instead

```python
import torch


class Impl:
    def __init__(self, scale: torch.Tensor) -> None:
        self.scale = scale
        self.table: torch.Tensor | None = None

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        if self.table is not None:
            self.table.copy_(self.scale * 2.0)
        else:
            self.table = self.scale * 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if self.table is None else x * self.table
```

## Fix safety

No automatic fix: who should own the memory is a matter of design.

## See also

`RB201` for owners that are built anew. The [hazard model](../hazard-model.md) says what a cell, a visible cell and a reload protocol are.
"""

from __future__ import annotations

from rebindlint.model import Binding, Hazard, Rebinding
from rebindlint.plugin import Rule


class ReleasedTensor(Rule):
    code = "RB106"
    name = "released-tensor"

    def owns(self, fact: Rebinding) -> bool:
        if fact.retransformed or fact.overlapping or fact.prefer_copy_unsupported:
            return False
        return fact.hazard is Hazard.LIFETIME and fact.binding is Binding.RELEASE

    def message(self, fact: Rebinding) -> str:
        return f"`{fact.cell.path}` is released when `{fact.hook}` runs again; a captured graph keeps using its memory"

    def advice(self, fact: Rebinding) -> str:
        return "keep the tensor and refresh it in place"
