"""## What it does

Reports an object (a kernel, experts, a quantisation config, a closure) that the second run builds anew although a tensor that only the old one owns was captured. What counts is what it
holds: an object whose tensors are registered parameters may be rebuilt as often as one likes.

## Why is this bad?

The constructor allocated device tensors, or folded weights into new ones. The old object goes, its tensors with it, and the graph that remembers their addresses reads memory that nobody owns.

## Example

```python
import torch


class Experts:
    def __init__(self, layer: torch.nn.Module) -> None:
        self.scratch = torch.zeros(64, device="cuda")

    def apply(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.scratch


class Method:
    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        self.experts = Experts(layer)

    def apply(self, layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return self.experts.apply(x)
```

## Use instead

```python
import torch


class Experts:
    def __init__(self, layer: torch.nn.Module) -> None:
        self.scratch = torch.zeros(64, device="cuda")

    def apply(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.scratch


class Method:
    def __init__(self) -> None:
        self.experts: Experts | None = None

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        if self.experts is None:
            self.experts = Experts(layer)

    def apply(self, layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return self.experts.apply(x)
```

## Fix safety

The fix builds the object in the first run only, behind `is None`. It is unsafe: right when everything the object holds is refreshed in place, and when nothing else that its construction does is needed
again. None is offered where the object derives tensors from weights, or where a constructor made another one before, which the guard would keep. After the fix the hook is executed again: where
something that the kept object holds is not refreshed then, the fix is put back.

## See also

`RB101` for the tensors themselves. The [hazard model](../hazard-model.md) says what a cell, a visible cell and a reload protocol are.
"""

from __future__ import annotations

from rebindlint.model import Binding, Hazard, Rebinding
from rebindlint.plugin import Rule


class HolderRebuilt(Rule):
    code = "RB201"
    name = "holder-rebuilt"

    def owns(self, fact: Rebinding) -> bool:
        if fact.retransformed or fact.overlapping or fact.prefer_copy_unsupported:
            return False
        return fact.hazard is Hazard.LIFETIME and fact.binding is Binding.HOLDER

    def message(self, fact: Rebinding) -> str:
        return f"`{fact.cell.path}` is built anew each time `{fact.hook}` runs and takes tensors of its own with it; a captured graph keeps using theirs"

    def advice(self, fact: Rebinding) -> str:
        return "build it once and refresh what it holds in place"
