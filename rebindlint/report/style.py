"""Colour or not, and text that is safe to print."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Mapping
from typing import TextIO

from rich.console import Console
from rich.text import Text

from rebindlint.model import Diagnostic, Severity

__all__ = ["COLOURS", "counted", "fix_marker", "printable", "rendered", "use_colour"]

COLOURS = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold blue"}
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def use_colour(stream: TextIO, environment: Mapping[str, str] | None = None) -> bool:
    """NO_COLOR forbids, FORCE_COLOR demands, otherwise a terminal that is not dumb decides."""
    environment = os.environ if environment is None else environment
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return stream.isatty() and environment.get("TERM") != "dumb"


def printable(text: str) -> str:
    """``text`` without characters that would move the cursor, reorder the line or start an escape sequence."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def fix_marker(diagnostic: Diagnostic, *, unsafe: bool) -> str:
    """``[*] `` for what ``--fix`` would fix now, else nothing."""
    fix = diagnostic.fix
    fixable = fix is not None and (fix.applicability == "safe" or (unsafe and fix.applicability == "unsafe"))
    return "[*] " if fixable else ""


def counted(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def rendered(lines: Iterable[Text], *, colour: bool) -> str:
    """The lines as one string, with escape sequences when ``colour``; never wrapped or cropped."""
    lines = list(lines)
    if not colour:
        return "".join(line.plain + "\n" for line in lines)
    buffer = io.StringIO()
    console = Console(file=buffer, force_terminal=True, color_system="standard", legacy_windows=False, no_color=False)
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False, markup=False, emoji=False)
    return buffer.getvalue()
