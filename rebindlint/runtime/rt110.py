"""# untouched (RT110)

## What it does

For tensors that the reload is said to update (`reloading(updates=[...])`): reports those that the captured
step reads and whose bytes are the same as before.

## Why is this bad

The step goes on with an old weight although a new one was loaded. Address, replay and eager run agree with
each other; only the values are old.

## Example

```python
def load_weights(self, weights):
    for name, tensor in weights:
        if name in self.known:  # the fused name is not in there
            self.known[name].copy_(tensor)
```

## Use instead

Make the loader fail on names that it does not use.

## Fix safety

There is no automatic fix.

## See also

RB204, RT104
"""

from __future__ import annotations

from typing import Final

from rebindlint.model import Severity
from rebindlint.runtime.codes import Code

CODE: Final = Code(
    "RT110",
    "untouched",
    Severity.WARNING,
    "addresses",
    "a tensor that the reload should have updated holds the old bytes",
    ("RB204",),
)
