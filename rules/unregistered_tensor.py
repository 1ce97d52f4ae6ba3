"""## What it does

Reports a device tensor in a plain attribute whose contents run-time code needs and nothing brings back after level-2 sleep. It is judged with `--reload sleep` (or `all`) only.

## Why is this bad?

Level-2 sleep throws away the contents of everything that lives in the weights' memory and keeps the addresses. What is registered comes back: parameters are loaded, buffers are saved and written
back. A tensor in a plain attribute is neither. It wakes up at the address that the graph knows, with whatever the memory holds by then, and nothing raises. That it does not depend on weights
is no help.

## Example

```python
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, 3, device="cuda"), requires_grad=False)
        self.slopes = torch.arange(3.0, device="cuda")

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        self.is_ready = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight * self.slopes
```

## Use instead

```python
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, 3, device="cuda"), requires_grad=False)
        self.register_buffer("slopes", torch.arange(3.0, device="cuda"), persistent=False)

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        self.is_ready = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight * self.slopes
```

## Fix safety

No automatic fix: an object that is no module has nowhere to register a buffer, and whether the contents can be computed again in the hook only the code's author knows.

## See also

`RB101` for plain attributes that get another tensor. The [hazard model](../hazard-model.md) says what a cell, a visible cell and a reload protocol are.
"""

from __future__ import annotations

from rebindlint.model import Rebinding
from rebindlint.plugin import Rule


class UnregisteredTensor(Rule):
    code = "RB401"
    name = "unregistered-tensor"

    def owns(self, fact: Rebinding) -> bool:
        return fact.lost

    def message(self, fact: Rebinding) -> str:
        return f"`{fact.cell.path}` is no registered buffer: level-2 sleep discards its contents, and neither loading nor `{fact.hook}` brings them back"

    def advice(self, fact: Rebinding) -> str:
        if fact.cell.owner_is_module or fact.receiver_is_module:
            return "register it as a buffer (`persistent=False`), or compute its contents again in place in the hook"
        return "let the layer register it as a buffer (`persistent=False`), or compute its contents again in place in the hook"
