"""## What it does

Reports a derived tensor that overwrote what it was derived from, so that the second run finds the derived form, has nothing to do and refreshes nothing.

## Why is this bad?

Loading writes the new weights where it always does, but nothing leads from there to the derived tensor any more. Graph and eager code alike go on with the first weights.

## Example

```python
import torch


class Impl:
    def __init__(self, sinks: torch.Tensor | None) -> None:
        self.sinks = sinks

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        if self.sinks is not None and self.sinks.dtype != torch.float32:
            self.sinks = self.sinks.to(torch.float32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.sinks
```

## Use instead

```python
import torch


class Impl:
    def __init__(self, sinks: torch.Tensor | None) -> None:
        self.source = sinks
        self.sinks = sinks

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        if self.source is None or self.source.dtype == torch.float32:
            return
        if self.sinks is None or self.sinks.dtype != torch.float32:
            self.sinks = self.source.to(torch.float32)
        else:
            self.sinks.copy_(self.source)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.sinks
```

## Fix safety

The source is kept under a private name and copied into the derived tensor on a reload; the first run leaves what it left before. Safe where the receiver is no module (a parameter assigned to a module would be registered
there a second time), else unsafe.

## See also

`RB204` for guards in general. The [hazard model](../hazard-model.md) says what a cell, a visible cell and a reload protocol are.
"""

from __future__ import annotations

from rebindlint.model import Hazard, Rebinding
from rebindlint.plugin import Rule


class LostSource(Rule):
    code = "RB203"
    name = "lost-source"

    def owns(self, fact: Rebinding) -> bool:
        if fact.retransformed or fact.overlapping or fact.prefer_copy_unsupported:
            return False
        return fact.hazard is Hazard.FRESHNESS and fact.source_lost

    def message(self, fact: Rebinding) -> str:
        return f"`{fact.cell.path}` overwrote the tensor it was derived from; when `{fact.hook}` runs again it cannot be refreshed, and graph and eager code keep the first weights"

    def advice(self, fact: Rebinding) -> str:
        return "keep the source under another name and copy into the derived tensor when the hook runs again"
