"""# rebound-unread (RT109)

## What it does

Notes a tensor that the reload put on other storage and that the captured step does not read.

## Why is this bad

It is no hazard for the captured step. It becomes one when another step (a prefill instead of a decode,
another batch size) that does read it is captured.

## Example

```python
self._k_scale_cpu = torch.tensor(1.0)  # set again by every reload, read by no kernel
```

## Use instead

Nothing has to change. Writing in place would be safe for every step.

## Fix safety

There is no automatic fix.

## See also

RB101, RT101
"""

from __future__ import annotations

from typing import Final

from rebindlint.model import Severity
from rebindlint.runtime.codes import Code

CODE: Final = Code(
    "RT109",
    "rebound-unread",
    Severity.NOTE,
    "addresses",
    "the reload rebound a tensor that the captured step does not read",
    ("RB101", "RB103"),
)
