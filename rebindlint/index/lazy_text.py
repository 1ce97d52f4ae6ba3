"""Where the text of a file looks as if run-time code built something once and kept it: nothing is parsed for this.

A test whether an attribute is there yet, and in the lines below it an assignment to the same attribute with a weight near it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rebindlint.index.hooks import belongs_to_loading

if TYPE_CHECKING:
    from rebindlint.index.tree import Index

__all__ = ["candidates", "fates", "mentions_weight", "numbers_of_weights"]

# Each begins with a literal, which is searched for several times as fast as anything else.
_ABSENT = re.compile(rb" is (?:not )?None\b")
_TESTED = re.compile(rb"\w\.(\w+)\)?$")  # before it: self.kept, also in parentheses with := in front
_CONDITION = re.compile(rb"\b(?:if|or|and)\b|^\s*[\w.]+$")
_NAMED = (
    re.compile(rb"hasattr\([ \t]*\w+[ \t]*,[ \t]*[\"'](\w+)[\"']"),
    re.compile(rb"getattr\([ \t]*[\w.]+[ \t]*,[ \t]*[\"'](\w+)[\"'][ \t]*,[ \t]*None[ \t]*\)"),
)
_MEMBER = re.compile(rb" in \w+\.(\w+)")
# kept = self.kept, or kept = self.kept.get(key), and a test of that
_ALIAS = re.compile(rb" = \w+\.(\w+)(?:\.get\([^\n]*\))?[ \t]*\n[ \t]*if[ \t]+(?:not[ \t]+)?(\w+)\b")
_FLAG = re.compile(rb"if not \w+\.(\w+)[ \t]*:")
_ASSIGNED = re.compile(
    rb"\.(\w+)\b(?:\[[^\n=]*\])?(?:[ \t]*,[^\n=]*)?[ \t]*(?::[^=\n]+)?=[^=]|setattr\([^\n]*[\"'](\w+)[\"']"
)
_SOURCE = re.compile(rb"\.\w*(?:weight|scale|bias)\w*\b(?!\w*[ \t]*\()|get\w*(?:weight|scale)\w*\(")
_CALLED = re.compile(rb"(?:\bself\.|[^.\w])(\w+)\(")
_BUILDER = re.compile(rb"^[ \t]+self\.(\w+)\(", re.M)  # a call that stands alone
_NEAR = 160
_BELOW = 2_700  # characters below a guard among which the attribute is assigned
_AFTER = 360
_CALLEE = 1_500  # characters of a function of the same file that is called there
_CALLEES = 8
_DEF = re.compile(rb"def (\w+)", re.ASCII)
_READ = re.compile(rb"\.item\(\)|(?:float|scalar)\(")
_NUMBER = re.compile(
    rb"\.(\w*(?:scale|weight|bias|zero)\w*)[ \t]*(?::[^=\n]+)?=[ \t]*(?:\(\s*)?"
    rb"(?:[\w.]*(?:scale|weight|bias|zero)\w*(?:\.\w+\([^()\n]*\))*\.item\(\)"
    rb"|\w*(?:float|scalar)\([\w.]*\.\w*(?:scale|weight|bias|zero)\w*\))"
)
_BEFORE = ("__init__", "__post_init__", "create_weights")
_FUNCTION = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)", re.M)
_DROPS = re.compile(r"[ \t]*(?::[^=\n]+)?=[ \t]*(?:None\b|\{\}|dict\(\))|\.clear\(\)")


def candidates(raw: bytes) -> set[str]:
    """Names of attributes that are tested for absence and assigned shortly below from something that names a weight."""
    found: set[bytes] = set()
    for name, start in _guards(raw):
        if name in found:
            continue
        assigned = _assignment(raw, name, start, start + _BELOW)
        if assigned is not None:
            is_built = mentions_weight(raw, start, assigned.end() + _AFTER)
        else:
            is_built = any(
                _assignment(raw, name, *body) is not None and mentions_weight(raw, *body)
                for body in _called(raw, start)
            )
        if is_built:
            found.add(name)
    for match in _FLAG.finditer(raw) if b" = True" in raw else ():
        name = match.group(1)
        below_it = raw.find(b"." + name + b" = True", match.end(), match.end() + _BELOW)
        if below_it >= 0 and mentions_weight(raw, match.end(), below_it + _AFTER):
            found.add(name)
    return {name.decode() for name in found}


def _assignment(raw: bytes, name: bytes, start: int, end: int) -> re.Match[bytes] | None:
    return next((a for a in _ASSIGNED.finditer(raw, start, end) if name in (a.group(1), a.group(2))), None)


def _called(raw: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Where the methods stand that the lines below a guard call."""
    for match in _BUILDER.finditer(raw, start, start + _NEAR):
        defined = raw.find(b"def " + match.group(1) + b"(")
        if defined >= 0:
            after = raw.find(b"def ", defined + 4)
            yield defined, min(after if after >= 0 else len(raw), defined + _BELOW)


def _guards(raw: bytes) -> Iterator[tuple[bytes, int]]:
    for match in _ABSENT.finditer(raw):
        line = raw[raw.rfind(b"\n", 0, match.start()) + 1 : match.start()]
        tested = _TESTED.search(line)
        if tested is not None and _CONDITION.search(line):
            yield tested.group(1), match.end()
    for pattern in _NAMED:
        for match in pattern.finditer(raw):
            yield match.group(1), match.end()
    for match in _MEMBER.finditer(raw):
        if b"if " in raw[raw.rfind(b"\n", 0, match.start()) + 1 : match.start()]:
            yield match.group(1), match.end()
    for match in _ALIAS.finditer(raw):
        if raw.endswith(match.group(2), 0, match.start()):
            yield match.group(1), match.end()


def mentions_weight(raw: bytes, start: int, end: int) -> bool:
    """Whether the text between two places mentions a weight, or calls a function of the same file that does."""
    if _SOURCE.search(raw, start, end):
        return True
    called = {match.group(1) for match in _CALLED.finditer(raw, start, end)}
    for name in sorted(called)[:_CALLEES]:
        defined = raw.find(b"def " + name + b"(")
        if defined >= 0:
            after = raw.find(b"def ", defined + 4)
            stop = min(after if after >= 0 else len(raw), defined + _CALLEE)
            if _SOURCE.search(raw, defined, stop):
                return True
    return False


def fates(text: str, names: set[str], is_loading: Callable[[str], bool]) -> dict[str, str]:
    """What functions that belong to loading do about each attribute: ``refreshed``, where it is judged with them,
    ``dropped``, so that run-time code builds it again, or ``kept``, where they have nothing to do with it.
    """
    functions = [(m.start(), m.group(1)) for m in _FUNCTION.finditer(text)]
    starts = [start for start, _ in functions]
    either = "|".join(re.escape(name) for name in sorted(names))
    found = dict.fromkeys(names, "kept")
    for match in re.finditer(rf"\.({either})\b|[\"']({either})[\"']", text):
        name = match.group(1) or match.group(2)
        position = bisect_right(starts, match.start()) - 1
        inside = functions[position][1] if position >= 0 else "__init__"
        if found[name] != "refreshed" and is_loading(inside) and inside not in _BEFORE:
            found[name] = "dropped" if _DROPS.match(text, match.end()) else "refreshed"
    return found


def _in_loading(index: Index, raw: bytes, offset: int) -> bool:
    found = _DEF.match(raw, max(raw.rfind(b"def ", 0, offset), 0))
    return found is not None and belongs_to_loading(index, found.group(1).decode())


def numbers_of_weights(index: Index) -> frozenset[str]:
    """Names of the attributes in which hooks keep host numbers that they read from weights, by how they are assigned."""
    known: frozenset[str] | None = index.pure.get("numbers of weights")
    if known is None:
        names: set[bytes] = set()
        for raw in index.bytes.values():
            if b"def process_weights_after_loading" in raw and _READ.search(raw):
                names |= {m.group(1) for m in _NUMBER.finditer(raw) if _in_loading(index, raw, m.start())}
        known = index.pure["numbers of weights"] = frozenset(name.decode() for name in names)
    return known
