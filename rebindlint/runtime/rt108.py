"""# layout-changed (RT108)

## What it does

Reports a tensor that stayed on its storage and changed shape, strides, offset or type. An error when the
captured step reads it with the old layout, else a note.

## Why is this bad

The captured step goes on reading the bytes with the old strides: values at the wrong places, or, with another
type, other values.

## Example

```python
def process_weights_after_loading(self):
    self.weight.data = self.weight.data.t()  # flips back and forth at every reload
```

## Use instead

Keep the layout that the kernels were captured with; bring new weights into it before they are copied.

## Fix safety

There is no automatic fix.

## See also

RB102, RB301, RT106
"""

from __future__ import annotations

from typing import Final

from rebindlint.model import Severity
from rebindlint.runtime.codes import Code

CODE: Final = Code(
    "RT108",
    "layout-changed",
    Severity.ERROR,
    "addresses",
    "a tensor has another layout on the same storage than the captured step reads",
    ("RB102", "RB301"),
)
