"""## What it does

Reports a `# rebindlint: ignore` comment without codes. It still suppresses.

## Why is this bad?

It hides every kind of finding on its line, also those that nobody has looked at.

## Fix safety

There is no fix: name the codes that were meant.

## See also

[Suppressions](../configuration.md).
"""

from __future__ import annotations

from rebindlint.model import Rebinding
from rebindlint.plugin import Rule


class BareSuppression(Rule):
    code = "RB002"
    name = "bare-suppression"

    def owns(self, fact: Rebinding) -> bool:
        return False

    def message(self, fact: Rebinding) -> str:
        return ""
