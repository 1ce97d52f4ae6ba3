"""## What it does

Notes a hook whose execution was cut short: too many paths, too many steps, or none that could be followed to its end.

## Why is this bad?

A hook without findings is clean only when its execution got through. The note keeps silence from meaning that it gave up; it never changes the exit code.

## Fix safety

There is no fix. Run with `--verbose` to see how many paths were taken.

## See also

[Suppressions](../configuration.md).
"""

from __future__ import annotations

from rebindlint.model import Rebinding
from rebindlint.plugin import Rule


class BudgetExhausted(Rule):
    code = "RB003"
    name = "budget-exhausted"

    def owns(self, fact: Rebinding) -> bool:
        return False

    def message(self, fact: Rebinding) -> str:
        return ""
