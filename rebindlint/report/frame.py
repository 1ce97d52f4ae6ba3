"""The code frame: lines of source with their numbers, carets below, or the lines that a fix changes."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from rebindlint.model import Edit, Place, Position
from rebindlint.report.style import printable
from rebindlint.texts import edited, split_lines

__all__ = ["diff_frame", "source_frame"]

_CONTEXT = 2
_LONGEST = 9  # lines of a statement that are shown whole
_TAB = 4
_WIDEST = 240  # columns of a line that are shown; generated code may have it all on one


def source_frame(text: str, place: Place, style: str) -> list[Text]:
    """The statement at ``place`` with two lines of context, marked with carets (or a bar when it has several lines)."""
    lines = split_lines(text)
    first, last = place.start.row, min(_last_row(place), len(lines))
    if not 1 <= first <= len(lines):
        return []
    top, bottom = max(first - _CONTEXT, 1), min(last + _CONTEXT, len(lines))
    while bottom > last and not lines[bottom - 1].strip():
        bottom -= 1
    width = len(str(bottom))
    frame = [_gutter(width)]
    for row in range(top, bottom + 1):
        if last - first >= _LONGEST and first + _LONGEST - 2 <= row < last:  # the middle of a long statement
            if row == last - 1:
                frame.append(Text("...", "bold blue"))
            continue
        bar = "" if first == last else "/ " if row == first else "| " if first < row <= last else "  "
        cut = _cut(lines[row - 1], place.start.column if row == first else 1)
        frame.append(_numbered(row, width, bar, _shown_part(lines[row - 1], cut), style))
        if row == last:
            frame.append(_gutter(width).append(" " + _mark(lines, place, last)[cut : cut + _WIDEST], style))
    return [*frame, _gutter(width)]


def diff_frame(text: str, edits: Sequence[Edit]) -> list[Text]:
    """What the edits change: removed lines, added lines and one line of context around, with the old numbers.

    Empty when the edits do not fit ``text``.
    """
    lines = split_lines(text)
    width = len(str(len(lines)))
    hunks = []
    for group in _neighbours(edits):
        try:
            hunk = _hunk(lines, group, width)
        except ValueError:
            return []
        hunks.append(hunk)
    frame: list[Text] = []
    for number, hunk in enumerate(hunks):
        frame += [Text("...", "bold blue"), *hunk] if number else hunk
    return [_gutter(width), *frame, _gutter(width)] if frame else []


def _neighbours(edits: Sequence[Edit]) -> list[list[Edit]]:
    """The edits in the order of the text, grouped where they touch the same or adjacent lines."""
    groups: list[list[Edit]] = []
    for edit in sorted(edits):
        if groups and edit.place.start.row <= max(e.place.end.row for e in groups[-1]) + 1:
            groups[-1].append(edit)
        else:
            groups.append([edit])
    return groups


def _hunk(lines: Sequence[str], edits: Sequence[Edit], width: int) -> list[Text]:
    first = max(min(edit.place.start.row for edit in edits) - 1, 1)
    last = min(max(edit.place.end.row for edit in edits) + 1, len(lines))
    before = list(lines[first - 1 : last])
    after = split_lines(edited("\n".join(before), [_moved(edit, first - 1) for edit in edits]))
    hunk: list[Text] = []
    for tag, low, high, new_low, new_high in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            hunk += [_changed(first + row, width, "|", before[row], "") for row in range(low, high)]
        else:
            hunk += [_changed(first + row, width, "-", before[row], "red") for row in range(low, high)]
            hunk += [_changed(None, width, "+", after[row], "green") for row in range(new_low, new_high)]
    return hunk


def _moved(edit: Edit, rows: int) -> Edit:
    place = edit.place
    start, end = Position(place.start.row - rows, place.start.column), Position(place.end.row - rows, place.end.column)
    return Edit(Place(place.filename, start, end), edit.content)


def _last_row(place: Place) -> int:
    """The end is exclusive: at column 1 the line before is the last one."""
    return place.end.row if place.end.column > 1 else max(place.end.row - 1, place.start.row)


def _gutter(width: int, number: str = "") -> Text:
    return Text().append(f"{number:>{width}} |", "bold blue")  # appended: what follows must not be blue, too


def _numbered(row: int, width: int, bar: str, line: str, style: str) -> Text:
    text = _gutter(width, str(row))
    text.append(" ").append(bar, style).append(shown_line(line))
    text.rstrip()
    return text


def _changed(row: int | None, width: int, sign: str, line: str, style: str) -> Text:
    """A line of a diff; an added one has no number yet."""
    text = Text().append(f"{row or '':>{width}} ", "bold blue")
    text.append(f"{sign} {shown_line(line)}", style)
    text.rstrip()
    return text


def _mark(lines: Sequence[str], place: Place, last: int) -> str:
    """Carets under the statement, or the foot of the bar beside its lines."""
    line = lines[last - 1]
    end = cell_len(shown_line(line[: place.end.column - 1] if place.end.row == last else line))
    if place.start.row != last:
        return "|" + "_" * max(end, 1) + "^"
    start = cell_len(shown_line(line[: place.start.column - 1]))
    return " " * start + "^" * max(end - start, 1)


def _cut(line: str, column: int) -> int:
    """How many columns to leave out at the start, so that ``column`` of a very long line is shown."""
    start = cell_len(shown_line(line[: column - 1]))
    return 0 if start < _WIDEST * 3 // 4 else start - _WIDEST // 4


def _shown_part(line: str, cut: int) -> str:
    """At most so many columns of a line, with dots where it goes on."""
    text = shown_line(line)
    part = text[cut : cut + _WIDEST]
    return ("..." + part[3:] if cut else part) + ("..." if len(text) > cut + len(part) else "")


def shown_line(line: str) -> str:
    """A line as it is printed: tabs as blanks, so that carets stand where they should."""
    return printable(line.expandtabs(_TAB))
