"""Suppressions: ``# rebindlint: ignore[RB101] reason`` on a statement or above it, ``ignore-file``, and ``# noqa: RB101``.

A suppression that suppresses nothing is reported (RB001), one without codes is too (RB002); a ``noqa`` never is,
because other linters own it.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from dataclasses import dataclass, field

from rebindlint.model import Applicability, Diagnostic, Edit, Fix, Place, Position, RebindlintError, Severity
from rebindlint.texts import split_lines

__all__ = ["FIXED_CODES", "Suppression", "apply_suppressions", "find_suppressions"]

FIXED_CODES = frozenset({"RB001"})  # what this stage reports together with a fix
# What a bare comment does not hide, or only where it was asked for: whether these are on says nothing about its use.
_NOT_HIDDEN = frozenset({"RB000", "RB001", "RB002", "RB004"})
# A reason may hold `#12`; it ends where a comment of another tool begins.
_IGNORE = re.compile(
    r"#+\s*rebindlint:\s*(?P<kind>ignore-file|ignore)(?![\w-])\s*(?:\[(?P<codes>[^\]]*)\])?"
    r"(?:(?!#\s*(?:noqa|nosec|(?:type|pyright|pylint|mypy|fmt|ruff|isort|pragma|rebindlint):)).)*",
    re.IGNORECASE,
)
_HEAD = re.compile(r"(ignore(?:-file)?)(?:\s*\[[^\]]*\])?", re.IGNORECASE)
_NOQA = re.compile(r"#\s*noqa\s*:\s?(?P<codes>[A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*)", re.IGNORECASE)
_CODE = re.compile(r"[A-Z]+[0-9]+", re.IGNORECASE)
_SEPARATOR = re.compile(r"[,\s]+")


@dataclass(slots=True)
class Suppression:
    """One comment. ``rows`` are the lines whose statements it speaks for; None means the whole file. ``codes`` is
    empty for a bare one. ``place`` is the comment itself, ``removal`` what goes when it is taken out."""

    place: Place
    text: str
    codes: tuple[str, ...]
    rows: frozenset[int] | None
    removal: Place | None = None  # None: a noqa, which other linters own
    used: set[str] = field(default_factory=set)

    def covers(self, diagnostic: Diagnostic) -> bool:
        if self.codes and not any(_matches(code, diagnostic.code) for code in self.codes):
            return False
        if self.rows is None:
            return True
        place = diagnostic.place
        last = place.end.row if place.end.column > 1 else max(place.start.row, place.end.row - 1)
        return any(row in self.rows for row in range(place.start.row, last + 1))

    def note(self, diagnostic: Diagnostic) -> None:
        self.used.update([code for code in self.codes if _matches(code, diagnostic.code)] or [diagnostic.code])


def apply_suppressions(
    diagnostics: Iterable[Diagnostic],
    read: Callable[[str], str],
    *,
    files: Collection[str] = (),
    is_on: Callable[[str], bool] = lambda code: True,
) -> list[Diagnostic]:
    """The diagnostics that no comment suppresses, and RB001 and RB002 about the comments of ``files``.

    ``is_on`` tells whether a rule was asked at all: a suppression of another rule is not called unused. A file that
    cannot be read or tokenised keeps all its diagnostics.
    """
    diagnostics = list(diagnostics)
    codes: dict[str, set[str]] = {filename: set() for filename in files}
    for diagnostic in diagnostics:
        codes.setdefault(diagnostic.place.filename, set()).add(diagnostic.code)
    found = {filename: _read_suppressions(filename, read, some) for filename, some in codes.items()}
    kept: list[Diagnostic] = []
    for diagnostic in diagnostics:
        suppressions = found[diagnostic.place.filename] if diagnostic.code != "RB000" else []
        covering = [suppression for suppression in suppressions if suppression.covers(diagnostic)]
        for suppression in covering:
            suppression.note(diagnostic)
        if not covering:
            kept.append(diagnostic)
    for filename in files:
        for suppression in found[filename]:
            kept += _hygiene(suppression, is_on)
    return kept


def find_suppressions(text: str, filename: str) -> list[Suppression]:
    """Every suppression comment, in order. A text that cannot be tokenised to its end gives those before the break."""
    lines = split_lines(text)
    comments = [(*token.start, token.string) for token in _comments(text)]
    alone = {row for row, column, _ in comments if not lines[row - 1][:column].strip()}
    found = []
    for row, column, comment in comments:
        for match in _IGNORE.finditer(comment):
            found.append(_ignore(match, filename, row, column, lines[row - 1], alone))
        if (noqa := _NOQA.search(comment)) is not None:
            found.append(_noqa(noqa, filename, row, column))
    return found


def _read_suppressions(filename: str, read: Callable[[str], str], codes: Set[str]) -> list[Suppression]:
    try:
        text = read(filename)
    except RebindlintError:
        return []
    return find_suppressions(text, filename) if _may_suppress(text, codes) else []


def _may_suppress(text: str, codes: Set[str]) -> bool:
    """Tokenising is slow, and nearly no file holds a suppression; so the text is looked at first, most cheaply first."""
    if "ebindlint" in text or "EBINDLINT" in text:
        return True
    if not codes or ("noqa" not in text and "NOQA" not in text):
        return False
    named = {code.upper() for match in _NOQA.finditer(text) for code in _CODE.findall(match["codes"])}
    return any(_matches(selector, code) for selector in named for code in codes)


def _comments(text: str) -> Iterable[tokenize.TokenInfo]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            if token.type == tokenize.COMMENT:
                yield token
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return


def _ignore(match: re.Match[str], filename: str, row: int, column: int, line: str, alone: set[int]) -> Suppression:
    text = match[0].rstrip()
    start, end = column + match.start(), column + match.start() + len(text)
    place = Place(filename, Position(row, start + 1), Position(row, end + 1))
    if line.strip() == text:  # the line holds nothing else and goes with it
        removal = Place(filename, Position(row, 1), Position(row + 1, 1))
    elif line[end:].strip():  # another comment follows: what stands before it keeps its distance
        removal = Place(filename, place.start, Position(row, column + match.end() + 1))
    else:
        removal = Place(filename, Position(row, len(line[:start].rstrip()) + 1), Position(row, len(line) + 1))
    codes = tuple(code.upper() for code in _SEPARATOR.split((match["codes"] or "").strip()) if code)
    rows: frozenset[int] | None = None
    if match["kind"].lower() == "ignore":
        rows = frozenset({row, _next_code_row(row, alone)} if row in alone else {row})
    return Suppression(place, text, codes, rows, removal)


def _noqa(match: re.Match[str], filename: str, row: int, column: int) -> Suppression:
    place = Place(filename, Position(row, column + match.start() + 1), Position(row, column + match.end() + 1))
    return Suppression(place, match[0], tuple(code.upper() for code in _CODE.findall(match["codes"])), frozenset({row}))


def _next_code_row(row: int, alone: set[int]) -> int:
    """The line below a comment that stands alone, past further comment lines."""
    row += 1
    while row in alone:
        row += 1
    return row


def _matches(selector: str, code: str) -> bool:
    return code.startswith(selector)


def _hygiene(suppression: Suppression, is_on: Callable[[str], bool]) -> Iterable[Diagnostic]:
    if suppression.removal is None:
        return
    codes, used = suppression.codes, suppression.used
    if not codes and used:
        if is_on("RB002"):
            yield _bare(suppression)
    elif "RB001" not in codes and is_on("RB001"):
        rules = _rules()
        unknown = [code for code in codes if not any(_matches(code, rule) for rule in rules.values())]
        if named := [code for code in unknown if code in rules]:
            yield _by_name(suppression, named[0], rules[named[0]])
            return
        unused = [code for code in codes if code not in used and (code in unknown or is_on(code))]
        fix = Fix(Applicability.SAFE, "Remove the unused suppression", (Edit(suppression.removal, ""),))
        why = f"; there is no rule {' or '.join(unknown)}" if unknown else ""
        if not codes:
            if all(is_on(rule) for rule in rules.values() if rule not in _NOT_HIDDEN):
                yield _unused(suppression, "suppresses nothing", fix)
        elif len(unused) == len(codes):
            yield _unused(suppression, f"of {', '.join(unused)} suppresses nothing{why}", fix)
        elif unused:
            rewritten = _rewritten(
                suppression, [code for code in codes if code not in unused], "Remove the unused codes"
            )
            yield _unused(suppression, f"names {', '.join(unused)}, which it does not suppress{why}", rewritten)


def _rules() -> dict[str, str]:
    """The code of each rule by its name, in capitals as a comment is read."""
    from rebindlint.catalogue import catalogue  # late: it asks here which codes are fixed

    return {entry.name.upper(): entry.code for entry in catalogue()}


def _by_name(suppression: Suppression, name: str, code: str) -> Diagnostic:
    """Somebody means a rule and hides nothing: what they want is not to have the comment removed."""
    message = f"this suppression names a rule by `{name.lower()}` and suppresses nothing: it needs the code, {code}"
    advice = f"write `# rebindlint: ignore[{code}] reason`"
    return Diagnostic("RB001", "unused-suppression", message, Severity.WARNING, suppression.place, help=advice)


def _unused(suppression: Suppression, what: str, fix: Fix) -> Diagnostic:
    return Diagnostic(
        "RB001", "unused-suppression", f"this suppression {what}", Severity.WARNING, suppression.place, fix=fix
    )


def _bare(suppression: Suppression) -> Diagnostic:
    codes = sorted(suppression.used)
    message = f"this suppression names no code: today it hides {', '.join(codes)}, tomorrow it may hide anything"
    advice = f"name the codes that are meant, as in `# rebindlint: ignore[{', '.join(codes)}] reason`"
    return Diagnostic("RB002", "bare-suppression", message, Severity.WARNING, suppression.place, help=advice)


def _rewritten(suppression: Suppression, codes: Sequence[str], message: str) -> Fix:
    content = _HEAD.sub(lambda match: f"{match[1]}[{', '.join(codes)}]", suppression.text, count=1)
    return Fix(Applicability.SAFE, message, (Edit(suppression.place, content),))
