"""## What it does

Reports a visible plain attribute (of a module, a kernel, a backend's impl, a quantisation method) that the second run of a post-load hook
binds to another tensor. Lists, tuples and dictionaries of tensors that are bound as a whole count too.

## Why is this bad?

A CUDA graph remembers tensors by address. After the reload the attribute shows the new tensor, eager code is right, and the graph goes on reading the old
memory: stale weights or, once the allocator has given that memory away, garbage. Nothing raises. Layerwise reloading saves
registered parameters and buffers by name; a plain attribute it does not know.

## Example

```python
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        self.folded = self.weight.t().contiguous()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.folded
```

## Use instead

```python
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.folded: torch.Tensor | None = None

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        folded = self.weight.t().contiguous()
        if self.folded is None:
            self.folded = folded
        else:
            self.folded.copy_(folded)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.folded
```

## Fix safety

Safe where shape and dtype provably agree on a reload: the tree's replace helper is called so that it copies, or the tensor is bound once and copied into
afterwards. A workspace whose contents do not depend on weights is allocated once. Where the name was bound before the hook and the value has other strides, the fix is not offered:
a copy in the first run would leave another layout behind. Neither is it where elements may share one place in memory (`expand`): nothing can be copied into those.

## See also

`RB103` for parameters, `RB102` for `.data`, `RB201` for objects that are built anew. The [hazard model](../hazard-model.md) says what a cell, a visible cell and a reload protocol are.
"""

from __future__ import annotations

from rebindlint.model import Binding, Hazard, Rebinding, Value
from rebindlint.plugin import Rule


class AttributeRebind(Rule):
    code = "RB101"
    name = "attribute-rebind"

    def owns(self, fact: Rebinding) -> bool:
        if fact.retransformed or fact.overlapping or fact.prefer_copy_unsupported:
            return False
        return fact.hazard is Hazard.ADDRESS and fact.binding is Binding.ATTRIBUTE

    def message(self, fact: Rebinding) -> str:
        what = "a new tensor" if fact.value is not Value.VIEW else "other memory"
        return f"`{fact.cell.path}` is bound to {what} each time `{fact.hook}` runs; a captured graph keeps reading the old one"

    def advice(self, fact: Rebinding) -> str:
        if fact.receiver_is_module:
            return "copy into the tensor that is there already, or hand it to the tree's replace helper"
        return "bind the tensor once and `copy_` into it afterwards"
