"""The table of hooks: one line a hook, below it one line for each statement that writes a cell."""

from __future__ import annotations

import io
import json
import re

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rebindlint.audit import Audit, CellAudit, HookAudit
from rebindlint.model import Place, Protocol
from rebindlint.report.style import counted, printable

__all__ = ["render", "render_json", "verdict"]

_UNBOUNDED = 10_000  # columns: a table that nobody looks at in a terminal is not folded
_LONGEST = 56  # characters of a path
_JUDGED_IN_PART = "*"


def render(audit: Audit, *, colour: bool, width: int | None = None, quiet: bool = False) -> str:
    """``width`` is the terminal's; without one nothing is folded and there are no escape sequences unless ``colour``."""
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for title in ("hook, cell", "line"):  # names fold anywhere, and where there is little room they alone do
        table.add_column(title, overflow="fold")
    table.add_column("kind", no_wrap=True)
    for protocol in audit.protocols:
        table.add_column(protocol.value, overflow="fold", min_width=len(protocol.value))
    for number, hook in enumerate(audit.hooks):
        if number:
            table.add_row()
        table.add_row(*_hook(hook, audit.protocols))
        for cell in hook.cells:
            table.add_row(*_cell(cell, hook, audit.protocols))
    buffer = io.StringIO()
    console = Console(
        file=buffer, width=width or _UNBOUNDED, force_terminal=colour, color_system="standard" if colour else None
    )
    if audit.hooks:
        console.print(table, soft_wrap=False)
    lines = [line.rstrip() for line in buffer.getvalue().splitlines()]
    return "\n".join([*lines, *([] if quiet else ["", *_summary(audit)])]).lstrip("\n") + "\n"


def _hook(hook: HookAudit, protocols: tuple[Protocol, ...]) -> list[Text]:
    verdicts = [_coloured(verdict(hook, protocol)) for protocol in protocols]
    return [Text(printable(hook.name), "bold"), Text(_at(hook.place)), Text(hook.kind), *verdicts]


def _cell(cell: CellAudit, hook: HookAudit, protocols: tuple[Protocol, ...]) -> list[Text]:
    place = cell.written.place
    line = f":{place.start.row}" if place.filename == hook.place.filename else _at(place)
    verdicts = [_coloured(", ".join(cell.codes.get(protocol, ())) or "-") for protocol in protocols]
    return [Text("  " + printable(_short(cell.written.path))), Text(line), Text(_ways(cell)), *verdicts]


def _ways(cell: CellAudit) -> str:
    return ", ".join(how.value for how in cell.written.how)


def _short(path: str) -> str:
    """A path through the result of a call may be as long as that call."""
    return path if len(path) <= _LONGEST else f"{path[: _LONGEST // 2]}...{path[-_LONGEST // 2 :]}"


def verdict(hook: HookAudit, protocol: Protocol) -> str:
    """``clean``, the codes found, ``refuses reload``, ``see callers`` or ``not judged``; an asterisk where a part was not judged."""
    codes = hook.codes.get(protocol, ())
    if codes:
        return ", ".join(codes) + (_JUDGED_IN_PART if hook.incomplete else "")
    if hook.elsewhere:
        return "see callers"
    if protocol in hook.refuses:
        return "refuses reload"
    if hook.incomplete:
        return "not judged" if "no path through it" in hook.incomplete else "clean" + _JUDGED_IN_PART
    return "clean"


def _coloured(text: str) -> Text:
    if re.search(r"RB\d{3}(?! \(suppressed\))", text):
        return Text(text, "bold red")
    return Text(text, "green" if text == "clean" else "yellow" if text != "-" else "")


def _at(place: Place) -> str:
    return printable(f"{place.filename}:{place.start.row}")


def _summary(audit: Audit) -> list[str]:
    parts = []
    for protocol in audit.protocols:
        clean = sum(1 for hook in audit.hooks if verdict(hook, protocol) == "clean")
        parts.append(f"{clean:,} clean under {protocol.value} reload")
    lines = [f"{counted(len(audit.hooks), 'hook')}: {', '.join(parts)}."] if audit.hooks else ["No hooks."]
    if any(verdict(hook, p).endswith(_JUDGED_IN_PART) for hook in audit.hooks for p in audit.protocols):
        lines.append(f"{_JUDGED_IN_PART} not judged to its end: `rebindlint check` says why (RB003).")
    return lines


def render_json(audit: Audit) -> str:
    """A list of hooks with their cells. Rows and columns count from 1."""
    return json.dumps([_record(hook, audit.protocols) for hook in audit.hooks], indent=2) + "\n"


def _record(hook: HookAudit, protocols: tuple[Protocol, ...]) -> dict[str, object]:
    return {
        "hook": hook.name,
        "class": hook.owner,
        "kind": hook.kind,
        "filename": hook.place.filename,
        "location": _location(hook.place),
        "executions": hook.executions,
        "incomplete": hook.incomplete or None,
        "verdict": {protocol.value: verdict(hook, protocol) for protocol in protocols},
        "codes": {protocol.value: list(hook.codes.get(protocol, ())) for protocol in protocols},
        "cells": [
            {
                "attribute": cell.written.path,
                "how": [how.value for how in cell.written.how],
                "filename": cell.written.place.filename,
                "location": _location(cell.written.place),
                "codes": {protocol.value: list(cell.codes.get(protocol, ())) for protocol in protocols},
            }
            for cell in hook.cells
        ],
    }


def _location(place: Place) -> dict[str, int]:
    return {"row": place.start.row, "column": place.start.column}
