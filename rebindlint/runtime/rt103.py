"""# stale-handle (RT103)

## What it does

Reports a native handle that the captured step passes to an operator and that the reload replaced: a tensor of
one 64-bit integer that holds a pointer (its owner has a ``__del__``, or the number looks like an address).
TorchScript objects such as packed weights cannot be told apart and are judged by the replay alone (RT102).

## Why is this bad

Behind a handle are weights that no tensor shows. The captured step goes on with the old handle; when its
owner frees the native object, the replay reads freed memory and may crash the process. Handles are therefore
never filled with NaN, and their Python owners are kept alive while the capture lives.

## Example

```python
def process_weights_after_loading(self):
    self.handler = PackedMatmul(self.weight)  # owns a pointer in self.handler.handle
```

## Use instead

Keep the native object and give it new weights in place, or capture again after the reload.

## Fix safety

There is no automatic fix.

## See also

RB201, RT101
"""

from __future__ import annotations

from typing import Final

from rebindlint.model import Severity
from rebindlint.runtime.codes import Code

CODE: Final = Code(
    "RT103",
    "stale-handle",
    Severity.ERROR,
    "addresses",
    "the captured step holds a native handle that the reload replaced",
    ("RB201",),
)
