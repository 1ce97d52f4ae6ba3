"""One line a diagnostic, for editors and ``grep``."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from rebindlint.model import Diagnostic
from rebindlint.report.style import COLOURS, fix_marker, printable

__all__ = ["render"]


def render(diagnostics: Iterable[Diagnostic], *, unsafe: bool = False) -> list[Text]:
    """``file:row:col: CODE [*] message``."""
    return [
        Text.assemble(
            f"{printable(str(d.place))}: ",
            (d.code, COLOURS[d.severity]),
            f" {fix_marker(d, unsafe=unsafe)}{printable(d.message)}",
        )
        for d in diagnostics
    ]
