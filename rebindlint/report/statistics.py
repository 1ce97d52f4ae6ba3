"""How often each rule spoke, most frequent first."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from rich.text import Text

from rebindlint.model import Diagnostic
from rebindlint.report.style import fix_marker

__all__ = ["Count", "count", "render", "render_json"]


@dataclass(frozen=True, slots=True)
class Count:
    """``fixable`` of ``count`` findings have a fix that may be applied."""

    code: str
    name: str
    count: int
    fixable: int


def count(diagnostics: Iterable[Diagnostic], *, unsafe: bool = False) -> list[Count]:
    groups: dict[tuple[str, str], list[Diagnostic]] = {}
    for diagnostic in diagnostics:
        groups.setdefault((diagnostic.code, diagnostic.name), []).append(diagnostic)
    counts = [
        Count(code, name, len(group), sum(1 for d in group if fix_marker(d, unsafe=unsafe)))
        for (code, name), group in groups.items()
    ]
    return sorted(counts, key=lambda one: (-one.count, one.code))


def render(counts: Iterable[Count]) -> list[Text]:
    """``count  code  marker  name``: ``[*]`` all fixable, ``[-]`` some of them, ``[ ]`` none."""
    counts = list(counts)
    width = max((len(str(one.count)) for one in counts), default=0)
    return [
        Text.assemble(
            (f"{one.count:>{width}}", "bold"),
            f"  {one.code}  ",
            ("[*]" if one.fixable == one.count else "[-]" if one.fixable else "[ ]", "bold cyan"),
            f"  {one.name}",
        )
        for one in counts
    ]


def render_json(counts: Iterable[Count]) -> str:
    records = [
        {"code": one.code, "name": one.name, "count": one.count, "fixable": one.fixable == one.count} for one in counts
    ]
    return json.dumps(records, indent=2) + "\n"
