"""The default report: message, place, code frame, call chain, help, and a summary line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from rich.text import Text

from rebindlint.model import Applicability, Diagnostic, Frame, RebindlintError, Severity
from rebindlint.report.frame import diff_frame, source_frame
from rebindlint.report.style import COLOURS, counted, fix_marker, printable

__all__ = ["render", "step", "summary"]


def render(diagnostics: Iterable[Diagnostic], read: Callable[[str], str], *, unsafe: bool = False) -> list[Text]:
    """One block a diagnostic, an empty line after each. ``read`` gives a file's text; without it there is no frame."""
    lines: list[Text] = []
    for diagnostic in diagnostics:
        lines += [*_block(diagnostic, read, unsafe), Text()]
    return lines


def summary(diagnostics: Sequence[Diagnostic], *, unsafe: bool = False) -> Text:
    """How many of what, and how many ``--fix`` would fix. A note is no hazard."""
    severities = Counter(d.severity for d in diagnostics)
    parts = ", ".join(counted(severities[severity], severity.value) for severity in Severity)
    files = len({d.place.filename for d in diagnostics})
    hazards = len(diagnostics) - severities[Severity.NOTE]
    line = Text(f"Found {counted(hazards, 'hazard')} ({parts}) in {counted(files, 'file')}.", "bold")
    safe = sum(1 for d in diagnostics if fix_marker(d, unsafe=unsafe))
    more = sum(
        1 for d in diagnostics if d.fix is not None and d.fix.applicability is Applicability.UNSAFE and not unsafe
    )
    if safe or more:
        option = "--fix --unsafe-fixes" if unsafe else "--fix"
        tail = f" ({more:,} more with --unsafe-fixes)" if more else ""
        line.append(f" {safe:,} fixable with {option}{tail}.")
    return line


def _block(diagnostic: Diagnostic, read: Callable[[str], str], unsafe: bool) -> list[Text]:
    style = COLOURS[diagnostic.severity]
    head = Text().append(diagnostic.code, style)
    marker = fix_marker(diagnostic, unsafe=unsafe)
    head.append(" " + marker.rstrip() if marker else "", "bold cyan")
    head.append(" " + printable(diagnostic.message), "bold")
    source = _read(read, diagnostic.place.filename)
    frame = [] if source is None else source_frame(source, diagnostic.place, style)
    gutter = frame[0].plain.index("|") - 1 if frame else 1  # the arrow stands above the bar
    lines = [head, Text.assemble((" " * gutter + "--> ", "bold blue"), printable(str(diagnostic.place))), *frame]
    lines += [_note(text) for text in _notes(diagnostic)]
    return lines + _help(diagnostic, source)


def _notes(diagnostic: Diagnostic) -> Iterable[str]:
    protocols = _joined([protocol.value for protocol in diagnostic.reload])
    yield f"severity {diagnostic.severity.value}" + (f", holds under {protocols} reload" if protocols else "")
    if diagnostic.hook and not diagnostic.trace:
        yield f"in hook {diagnostic.hook}"
    for number, frame in enumerate(diagnostic.trace):
        yield f"{step(number, frame)}{frame.text} ({frame.filename}:{frame.row})"


def step(number: int, frame: Frame) -> str:
    """How a frame of the call chain is introduced; the last may be what a statement does instead of a call."""
    return "in hook " if not number else "" if frame.text.startswith("binds ") else "called "


def _help(diagnostic: Diagnostic, source: str | None) -> list[Text]:
    fix = diagnostic.fix
    if fix is None:
        return [_labelled("help", diagnostic.help)] if diagnostic.help else []
    lines = [_labelled("help", fix.message)]
    if source is not None:
        lines += diff_frame(source, [edit for edit in fix.edits if edit.place.filename == diagnostic.place.filename])
    if fix.applicability is Applicability.UNSAFE:
        lines.append(_note("this fix is unsafe: it may change what a load leaves behind; it needs --unsafe-fixes"))
    elif fix.applicability is Applicability.DISPLAY:
        lines.append(_note("this fix is a suggestion: it is shown, never applied"))
    return lines


def _note(text: str) -> Text:
    return _labelled("note", text)


def _labelled(label: str, text: str) -> Text:
    line = Text().append(f"{label}: ", "bold cyan" if label == "help" else "bold blue")
    line.append(printable(text))
    return line


def _read(read: Callable[[str], str], filename: str) -> str | None:
    try:
        return read(filename)
    except RebindlintError:
        return None


def _joined(words: Sequence[str]) -> str:
    return "".join(words) if len(words) < 2 else f"{', '.join(words[:-1])} and {words[-1]}"
