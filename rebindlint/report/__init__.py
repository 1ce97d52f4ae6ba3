"""What was found, written out: one module a format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.text import Text

from rebindlint.model import Diagnostic
from rebindlint.report import concise, json, statistics, text
from rebindlint.report.style import counted, rendered, use_colour

__all__ = ["Style", "report", "use_colour"]


@dataclass(frozen=True, slots=True)
class Style:
    """How to write a report. ``unsafe``: unsafe fixes count as applicable; ``quiet``: no summary."""

    format: str = "text"
    unsafe: bool = False
    statistics: bool = False
    quiet: bool = False
    colour: bool = False


def report(diagnostics: Sequence[Diagnostic], read: Callable[[str], str], style: Style, *, files: int) -> str:
    """The whole report as one string. ``read`` gives the text of a file; ``files`` is the number of files linted."""
    if style.statistics:
        counts = statistics.count(diagnostics, unsafe=style.unsafe)
        return (
            statistics.render_json(counts)
            if style.format == "json"
            else rendered(statistics.render(counts), colour=style.colour)
        )
    if style.format == "json":
        return json.render(diagnostics)
    if style.format == "concise":
        lines = concise.render(diagnostics, unsafe=style.unsafe)
    else:
        lines = text.render(diagnostics, read, unsafe=style.unsafe)
    return rendered(lines + ([] if style.quiet else _summary(diagnostics, style, files)), colour=style.colour)


def _summary(diagnostics: Sequence[Diagnostic], style: Style, files: int) -> list[Text]:
    if diagnostics:
        return [text.summary(diagnostics, unsafe=style.unsafe)]
    return [Text(f"No hazards found in {counted(files, 'file')}.", "bold")] if files else []
