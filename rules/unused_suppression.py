"""## What it does

Reports a `# rebindlint: ignore[...]` comment that suppresses nothing.

## Why is this bad?

It hides the next hazard that comes to stand on that line.

## Fix safety

Safe: the comment is removed.

## See also

[Suppressions](../configuration.md).
"""

from __future__ import annotations

from rebindlint.model import Rebinding
from rebindlint.plugin import Rule


class UnusedSuppression(Rule):
    code = "RB001"
    name = "unused-suppression"

    def owns(self, fact: Rebinding) -> bool:
        return False

    def message(self, fact: Rebinding) -> str:
        return ""
