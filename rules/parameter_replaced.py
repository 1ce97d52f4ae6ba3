"""## What it does

Reports a new `Parameter` or buffer that the second run puts where the captured one stood: by assignment, `setattr`, `register_parameter` or `register_buffer`.

## Why is this bad?

A CUDA graph remembers tensors by address. After the reload the attribute shows the new tensor, eager code is right, and the graph goes on reading the old
memory: stale weights or, once the allocator has given that memory away, garbage. Nothing raises. Layerwise reloading copies the result back by name, so under it only modules that it does not process are at risk; frameworks that load
weights and call the hook themselves save nothing.

## Example

```python
import torch
from torch.nn import Parameter


class Method:
    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        layer.weight_scale = Parameter(layer.weight_scale.max(), requires_grad=False)

    def apply(self, layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x * layer.weight_scale
```

## Use instead

```python
import torch
from torch.nn import Parameter


class Method:
    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        layer.weight_scale = Parameter(layer.weight_scale.data, requires_grad=False)

    def apply(self, layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x * layer.weight_scale
```

## Fix safety

The tree's replace helper is called, so that it copies on a reload. Safe where the name first appears in the hook or the helper compares strides, else unsafe. Not offered where the value is a view of the
parameter that it replaces with other strides: the copy in the first run would read what it overwrites. Nor where elements may share one place in memory (`expand`), where the function deletes the parameter before
it binds the new one, or where a value in a device's private format would be copied into a parameter that was there before.

## See also

`RB104` for the helper itself, `RB101` for plain attributes. The [hazard model](../hazard-model.md) says what a cell, a visible cell and a reload protocol are.
"""

from __future__ import annotations

from rebindlint.model import Binding, Hazard, Rebinding
from rebindlint.plugin import Rule


class ParameterReplaced(Rule):
    code = "RB103"
    name = "parameter-replaced"

    def owns(self, fact: Rebinding) -> bool:
        if fact.retransformed or fact.overlapping or fact.prefer_copy_unsupported:
            return False
        return fact.hazard is Hazard.ADDRESS and fact.binding is Binding.PARAMETER

    def message(self, fact: Rebinding) -> str:
        return f"`{fact.cell.path}` is replaced by a new parameter each time `{fact.hook}` runs; a captured graph keeps reading the old one"

    def advice(self, fact: Rebinding) -> str:
        return "hand the tensor to the tree's replace helper so that it copies on a reload"
