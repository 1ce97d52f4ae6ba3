"""# alias-broken (RT107)

## What it does

Reports paths that overlapped in one storage before the reload and lead to different storages afterwards.

## Why is this bad

Code that relied on the sharing (tied embeddings, a quantisation config that points at a layer's scales, views
of one packed weight) now updates one of them and reads the other. The captured step may still be right,
because it holds the storage that is updated; the next in-place update separates the two for good.

## Example

```python
self.lm_head.weight = nn.Parameter(new_weight)  # was self.embed_tokens.weight
```

## Use instead

Write into the shared tensor, or bind every name to the new one.

## Fix safety

There is no automatic fix.

## See also

RB101, RB103, RT101
"""

from __future__ import annotations

from typing import Final

from rebindlint.model import Severity
from rebindlint.runtime.codes import Code

CODE: Final = Code(
    "RT107",
    "alias-broken",
    Severity.WARNING,
    "addresses",
    "two names shared memory before the reload and no longer do",
    ("RB101", "RB103"),
)
