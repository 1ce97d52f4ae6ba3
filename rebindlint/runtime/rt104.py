"""# fresh-load-differs (RT104)

## What it does

Compares the reloaded model with a fresh load of the same weights in the same process: tensor by tensor, then
the results of a step; the first module whose output differs is named. When no tensor differs the evidence says
so: what is wrong then lies where Python cannot look, behind a native handle, or in a number that a hook keeps.

## Why is this bad

Some reloads leave every address in place and agree with their own replay, and are still wrong: a repacking
step was skipped, a derived tensor was never refreshed, a native object kept old weights. Only a fresh load
shows it.

Compared are registered parameters and buffers, and plain attributes that the captured step reads. Left out
are tensors that the step itself writes (caches, counters) and native handles.

## Example

```python
def process_weights_after_loading(self):
    if self.packed is None:  # true only the first time
        self.packed = pack(self.weight)
```

## Use instead

Refresh everything that is derived from a weight whenever the weight is loaded.

## Fix safety

There is no automatic fix.

## See also

RB203, RB204, RB205, RT105, RT110
"""

from __future__ import annotations

from typing import Final

from rebindlint.model import Severity
from rebindlint.runtime.codes import Code

CODE: Final = Code(
    "RT104",
    "fresh-load-differs",
    Severity.ERROR,
    "fresh",
    "the reloaded model is not what a fresh load of the same weights gives",
    ("RB203", "RB204", "RB205", "RB301"),
)
