"""## What it does

Reports a guard (`is None`, `hasattr`, a flag, an early return) behind which a tensor is derived from weights once; the second run goes past it and refreshes nothing.

## Why is this bad?

The guard keeps the address, which is right, and the contents, which is wrong: new weights are loaded and the derived tensor still shows the old ones.

## Example

```python
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.packed: torch.Tensor | None = None

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        if self.packed is not None:
            return
        self.packed = self.weight * 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.packed
```

## Use instead

```python
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.packed: torch.Tensor | None = None

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        packed = self.weight * 2.0
        if self.packed is not None:
            self.packed.copy_(packed)
        else:
            self.packed = packed

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.packed
```

## Fix safety

Where nothing but the tensor stands behind `is None`, `hasattr` or `getattr`, an `else` is added that derives it again and copies it into the one that is there. Unsafe: what it is derived from
must still be there on a reload. Other guards are left alone: what has to be computed again, and into what, only the code's author knows.

## See also

`RB203` where the source itself is gone. The [hazard model](../hazard-model.md) says what a cell, a visible cell and a reload protocol are.
"""

from __future__ import annotations

from rebindlint.model import Hazard, Rebinding
from rebindlint.plugin import Rule


class OneShotGuard(Rule):
    code = "RB204"
    name = "one-shot-guard"

    def owns(self, fact: Rebinding) -> bool:
        if fact.retransformed or fact.overlapping or fact.prefer_copy_unsupported:
            return False
        return fact.hazard is Hazard.FRESHNESS and not fact.source_lost

    def message(self, fact: Rebinding) -> str:
        if fact.not_called:
            return f"`{fact.cell.path}` is derived from weights by `{fact.hook}`, which a layerwise reload does not call again; graph and eager code keep the first weights"
        where = f" (line {fact.guarded.start.row})" if fact.guarded is not None else ""
        return f"`{fact.cell.path}` is derived from weights once; a guard{where} skips it when `{fact.hook}` runs again, and graph and eager code keep the first weights"

    def advice(self, fact: Rebinding) -> str:
        if fact.not_called:
            return "derive it from `load_weights`, or in a hook of the layer that owns the weights, and `copy_` it into the tensor that is there"
        return "derive it again behind the guard and `copy_` it into the tensor that is there"
