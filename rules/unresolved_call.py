"""## What it does

Lists, with `--show-unresolved` only, each call that could not be entered, and what was assumed of it instead.

## Why is this bad?

It is not: most such calls lead to compiled kernels and to libraries outside the tree. But a verdict is as good as what was
assumed on the way to it. Where an assumption is wrong, a hazard is missed or an alarm is false.

## Fix safety

There is no fix.

## Options

[`helpers` and `allocators`](../configuration.md#what-counts-as-a-hazard) say what a function does that cannot be entered:

```toml
[tool.rebindlint]
allocators = ["kernels.pack"]
```

A library of Python code can also be linted together with the tree that calls it.

## See also

[Explanations](../explanations.md) of single findings, RB003.
"""

from __future__ import annotations

from rebindlint.model import Rebinding
from rebindlint.plugin import Rule


class UnresolvedCall(Rule):
    code = "RB004"
    name = "unresolved-call"

    def owns(self, fact: Rebinding) -> bool:
        return False

    def message(self, fact: Rebinding) -> str:
        return ""
