"""# held-dead (RT101)

## What it does

Reports a storage that the captured step reads or writes and that the reloaded model no longer uses where the
capture found it: it was freed, only something else still keeps it, or its memory was moved.

## Why is this bad

A CUDA graph remembers addresses. After the reload the model works on new memory, the graph goes on with the
old: stale weights as long as nobody reuses the memory, anything at all afterwards. There is no error message.

A storage counts as dead when none of the names under which the capture found it leads to it any more.
"Nothing owns it" is stated only when the number of its owners proves it; then it is also filled with NaN and
the replay shown to follow (see `evidence`).

## Example

```python
def process_weights_after_loading(self):
    self.w_uv = self.kv_b_proj.weight.view(heads, -1, rank).transpose(1, 2).contiguous()
```

## Use instead

```python
    w_uv = self.kv_b_proj.weight.view(heads, -1, rank).transpose(1, 2)
    if hasattr(self, "w_uv"):
        self.w_uv.copy_(w_uv)
    else:
        self.w_uv = w_uv.contiguous()
```

## Fix safety

The runtime half does not edit code; the static rule of the same kind may offer a fix for the line that is
named.

## See also

RB101, RB102, RB103, RB104, RB105, RB106, RB201, RT102, RT109
"""

from __future__ import annotations

from typing import Final

from rebindlint.model import Severity
from rebindlint.runtime.codes import Code

CODE: Final = Code(
    "RT101",
    "held-dead",
    Severity.ERROR,
    "addresses",
    "the captured step holds memory that the reloaded model no longer uses",
    ("RB101", "RB102", "RB103", "RB104", "RB105", "RB106", "RB201"),
)
