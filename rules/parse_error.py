"""## What it does

Reports a file that could not be read as Python: a syntax error, or nesting too deep for a parser.

## Why is this bad?

What cannot be parsed is not checked; silence about such a file would be mistaken for an acquittal.

## Fix safety

There is no fix.

## See also

[Suppressions](../configuration.md).
"""

from __future__ import annotations

from rebindlint.model import Rebinding
from rebindlint.plugin import Rule


class ParseError(Rule):
    code = "RB000"
    name = "parse-error"

    def owns(self, fact: Rebinding) -> bool:
        return False

    def message(self, fact: Rebinding) -> str:
        return ""
