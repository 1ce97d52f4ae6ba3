"""# non-idempotent (RT106)

## What it does

For a reload of the *same* weights (`reloading(same_weights=True)`): reports tensors whose values, shape or
type changed.

## Why is this bad

Hooks run again on what they left behind. One that folds a scale, transposes or repacks its own result gives
another model each time.

## Example

```python
def process_weights_after_loading(self):
    self.weight.mul_(self.scale)  # the second run scales again
```

## Use instead

Derive from the loaded weight, not from the processed one; or reset the scale that has been folded in.

## Fix safety

There is no automatic fix.

## See also

RB301, RB302, RT108
"""

from __future__ import annotations

from typing import Final

from rebindlint.model import Severity
from rebindlint.runtime.codes import Code

CODE: Final = Code(
    "RT106",
    "non-idempotent",
    Severity.WARNING,
    "addresses",
    "loading the same weights again changes a tensor",
    ("RB301", "RB302"),
)
