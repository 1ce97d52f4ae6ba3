"""## What it does

Reports a call of the tree's replace helper (`replace_parameter` and its namesakes) that binds other memory in the second run: because it is not asked to copy
(`prefer_copy` is missing), because this tree's helper cannot, or because its condition for copying fails.

## Why is this bad?

A CUDA graph remembers tensors by address. After the reload the attribute shows the new tensor, eager code is right, and the graph goes on reading the old
memory: stale weights or, once the allocator has given that memory away, garbage. Nothing raises. The helper's name promises more than every release of it keeps; rebindlint reads
the helper's own source in the tree at hand.

## Example

```python
import torch
from torch.nn import Parameter


def replace_parameter(layer: torch.nn.Module, name: str, new: torch.Tensor, prefer_copy: bool = False) -> None:
    old = getattr(layer, name, None)
    if prefer_copy and old is not None and old.shape == new.shape:
        old.data.copy_(new)
        return
    setattr(layer, name, Parameter(new, requires_grad=False))


class Method:
    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        replace_parameter(layer, "weight", layer.weight * 2)

    def apply(self, layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x @ layer.weight
```

## Use instead

```python
import torch
from torch.nn import Parameter


def replace_parameter(layer: torch.nn.Module, name: str, new: torch.Tensor, prefer_copy: bool = False) -> None:
    old = getattr(layer, name, None)
    if prefer_copy and old is not None and old.shape == new.shape:
        old.data.copy_(new)
        return
    setattr(layer, name, Parameter(new, requires_grad=False))


class Method:
    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        replace_parameter(layer, "weight", layer.weight * 2, prefer_copy=True)

    def apply(self, layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x @ layer.weight
```

## Fix safety

`prefer_copy=True` is added where the helper takes it. Safe where the name first appears in the hook or the strides stay as they are, unsafe where the first run could copy into a parameter of other strides.
Where the helper cannot copy, the tree's own that can is called instead, or the tensor is bound once and copied into. No fix where elements may share one place in memory (`expand`): nothing can be copied into those.

## See also

`RB304` for trees whose helper does not take the argument. The [hazard model](../hazard-model.md) says what a cell, a visible cell and a reload protocol are.
"""

from __future__ import annotations

from rebindlint.model import Binding, Hazard, HelperKind, Rebinding
from rebindlint.plugin import Rule


class ReplaceWithoutCopy(Rule):
    code = "RB104"
    name = "replace-without-copy"

    def owns(self, fact: Rebinding) -> bool:
        if fact.retransformed or fact.overlapping or fact.prefer_copy_unsupported:
            return False
        return fact.hazard is Hazard.ADDRESS and fact.binding is Binding.REPLACE

    def message(self, fact: Rebinding) -> str:
        helper = fact.helper.function if fact.helper is not None else "the replace helper"
        return f"`{helper}` binds `{fact.cell.path}` to other memory each time `{fact.hook}` runs; a captured graph keeps reading the old memory"

    def advice(self, fact: Rebinding) -> str:
        if fact.helper is not None and fact.helper.kind is HelperKind.PREFER_COPY:
            return "pass `prefer_copy=True` where shape, dtype and strides stay the same on a reload"
        return "keep the memory: copy into the parameter that is there already"
