"""Which attributes run-time code reads: only those can be in a captured graph."""

from __future__ import annotations

import ast
import re
import textwrap
from bisect import bisect_left
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from rebindlint.index.hooks import Hook, is_loading_name
from rebindlint.index.layer_reads import Guards, LayerReads, reads_of_layer, settings_of
from rebindlint.index.mentions import Mentions, indent_of
from rebindlint.index.modules import descend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rebindlint.index.classes import ClassInfo, FunctionInfo
    from rebindlint.index.tree import Index

__all__ = ["Readers"]

_SYNC = re.compile(r"\.(?:item|tolist)\(\)|\bbool\([^\n]*\.(?:any|all)\(")
# what an attribute is read of: a part of something, a variable, what getattr() is given; any self
_PART = re.compile(r"\.\w+$")
_VARIABLE = re.compile(r"(?<![\w.\])])(?!self\b)\w+$")
_NAMED = re.compile(r"getattr\((?!layer\b)[\w.]+,[ \t]*$")
_SELF = re.compile(r"(?<![\w.])self$")
_MOST_OWNER = 100  # characters of what it is read of that are looked at
_NAME = r"\*?[\w.]+(?:\[[^\]\n]*\])?"
_GAP = r"(?:\s|#[^\n]*\n)*"
# several targets in brackets as far as one of them and from there on, and the same without brackets on one line
_OPENED = re.compile(rf"^[ \t]*[(\[]{_GAP}(?:{_NAME}{_GAP},{_GAP})*[\w.]+$", re.M)
_CLOSED = re.compile(rf"(?:{_GAP},{_GAP}{_NAME})*{_GAP},?{_GAP}[)\]][ \t]*=(?!=)")
_FIRST = re.compile(rf"^[ \t]*(?:{_NAME}[ \t]*,[ \t]*)*[\w.]+$", re.M)
_LAST = re.compile(rf"(?:[ \t]*,[ \t]*{_NAME})*[ \t]*,? = ")
_MOST_BEFORE = 600  # characters of an assignment to several targets that are looked at


class Readers:
    """Answers from the text of the files, the hook's own file first; parses nothing."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._mentions = Mentions(index)
        self._files = sorted(index.bytes)
        self._visible: dict[str, bool] = {}
        self._of_layer: dict[tuple[int, int], list[tuple[FunctionInfo, LayerReads | None]]] = {}
        self._reached: dict[tuple[int, int], dict[int, frozenset[Guards]]] = {}
        self._own: dict[str, bool] = {}
        self._syncs: dict[tuple[str, int], bool] = {}
        self._of_self: dict[tuple[int, str], bool] = {}

    @classmethod
    def of(cls, index: Index) -> Readers:
        """The one instance of an index: what it found out is kept."""
        if index.readers is None:
            index.readers = cls(index)
        assert isinstance(index.readers, cls)
        return index.readers

    def is_visible(self, name: str, home: str = "") -> bool:
        """Whether code outside loading mentions ``.name`` for reading (or ``"name"``, as ``getattr`` does)."""
        if not name.isidentifier():
            return True
        known = self._visible.get(name)
        if known is None:
            known = self._visible[name] = any(True for _ in self._reads(name, home))
        return known

    def is_read_of_layer(self, name: str, hook: Hook, statement: ast.AST) -> bool:
        """Whether run-time code may read what a statement of a hook, or of what it calls, left on the hook's layer.

        Where the run-time code of the hook's class, and what it hands the layer to, spells out what it reads of the layer,
        only that counts, and what reads it of an object that may be the layer of anybody. What is read where the class's
        own settings are others than where the statement stands is not read then.
        """
        if hook.receiver is None or not name.isidentifier():
            return True
        key = (id(hook.function.node), id(hook.receiver))
        if key not in self._of_layer:
            self._of_layer[key] = reads_of_layer(self._index, hook)
        given = [
            method
            for method, reads in self._of_layer[key]
            if reads is None or self._reads_there(reads, name, hook, statement)
        ]
        if any(not self._is_no_reader(method) for method in given):
            return True
        if all(self._is_no_reader(method) for method, _ in self._of_layer[key] if method not in given):
            return True  # nothing is known of what reads it
        own = self._own.get(name)
        if own is None:
            own = self._own[name] = self._is_read_of_any_layer(name)
        return own

    def _is_read_of_any_layer(self, name: str) -> bool:
        """Whether it is read of an object that may be the layer of anybody: of a part of something, in a layer that applies its
        method, or of a variable.
        """
        variables: list[tuple[str, int]] = []
        for shown, text, start in self._reads(name, ""):
            begin = max(0, start - _MOST_OWNER)
            if text[start] != ".":
                read = _NAMED.search(text, begin, start) is not None
            elif _SELF.search(text, begin, start):
                read = b"quant_method.apply" in self._index.bytes[shown]
            else:
                read = _PART.search(text, begin, start) is not None
                variable = _VARIABLE.search(text, begin, start)
                variables += [(shown, variable.start())] if variable is not None else ()
            if read:
                return True
        texts = {shown: self._text(shown) for shown, _ in variables}
        return any(self._mentions.may_be_of_layer(shown, texts[shown], start) for shown, start in variables)

    def is_called_by_nobody(self, method: FunctionInfo) -> bool:
        """Whether run-time code never gets to the method: nothing calls it, neither in the tree nor, as far as can be told, outside."""
        return self._mentions.is_called_by_nobody(method)

    def _text(self, shown: str) -> str:
        return self._index.bytes[shown].decode("utf-8", "replace")

    def _is_no_reader(self, method: FunctionInfo) -> bool:
        return self._mentions.only_loads(method) or self._mentions.only_own(method)

    def _reads_there(self, reads: LayerReads, name: str, hook: Hook, statement: ast.AST) -> bool:
        """Whether the name is read under settings that may hold where it is bound."""
        found = {guards for pattern, every in reads.items() if fnmatchcase(name, pattern) for guards in every}
        if not found or frozenset() in found:
            return bool(found)
        return any(_agree(guards, others) for guards in found for others in self._settings(hook, statement))

    def _settings(self, hook: Hook, statement: ast.AST) -> frozenset[Guards]:
        """The settings of the hook's class under which the statement is reached; nothing is known of what cannot be followed."""
        key = (id(hook.function.node), id(hook.receiver))
        if key not in self._reached:
            self._reached[key] = settings_of(self._index, hook)
        return self._reached[key].get(id(statement)) or frozenset({frozenset()})

    def is_read_of_self(self, name: str, cls: ClassInfo) -> bool:
        """Whether run-time code may read an attribute of an object of ``cls``: code of its own classes, or through another name."""
        key = (id(cls.node), name)
        known = self._of_self.get(key)
        if known is None:
            own = {base.name for member in self._index.subclasses(cls) for base in self._index.mro(member)}
            known = self._of_self[key] = any(
                not _of_self(text, start) or self._mentions.class_around(shown, text, start) in {"", *own}
                for shown, text, start in self._reads(name, cls.module.shown)
            )
        return known

    def _reads(self, name: str, home: str) -> Iterator[tuple[str, str, int]]:
        """File, its text and the place, of every mention that may read the name at run time."""
        encoded = name.encode()
        pattern = re.compile(rf"\.{re.escape(name)}\b(?![ \t]*(?::[^=\n]*)?=[^=])|[\"']{re.escape(name)}[\"']")
        for shown in self._nearest_first(home):
            raw = self._index.bytes[shown]
            if encoded not in raw or _is_warmup(shown):
                continue
            text = raw.decode("utf-8", "replace")
            for match in pattern.finditer(text):
                function, start = self._mentions.enclosing(shown, text, match.start())
                if (
                    not is_loading_name(function)
                    and not _is_target(text, match.end() - len(name) - 1, match.end())
                    and not self._synchronises(shown, text, start)
                ):
                    yield shown, text, match.start()

    def _nearest_first(self, home: str) -> Iterator[str]:
        """The file itself, the others of its folder, those below the folder around it, and so on: mostly the first ones read it."""
        files, around = self._files, home
        start = stop = bisect_left(files, home)
        if home in self._index.bytes:
            yield home
            stop += 1
        while start > 0 or stop < len(files):
            around = around.rpartition("/")[0]
            below = f"{around}/", f"{around}0"  # what comes after the slash is the 0
            first, last = (bisect_left(files, end) for end in below) if around else (0, len(files))
            yield from files[first:start]
            yield from files[stop:last]
            start, stop = first, last

    def _synchronises(self, shown: str, text: str, start: int) -> bool:
        """Whether the function defined at ``start`` waits for the device whatever happens: no graph can capture it."""
        known = self._syncs.get((shown, start))
        if known is None:
            end = re.compile(rf"^[ \t]{{0,{indent_of(text, start)}}}[^\s#)]", re.M).search(
                text, text.index("\n", start) + 1
            )
            body = text[start : end.start() if end else len(text)]
            known = self._syncs[(shown, start)] = bool(_SYNC.search(body)) and _waits(body)
        return known


def _is_warmup(shown: str) -> bool:
    """Code that runs before anything is captured."""
    return "/warmup/" in shown


def _of_self(text: str, dot: int) -> bool:
    """Whether the attribute is one of ``self``, whoever that is."""
    return text[dot] == "." and bool(_SELF.search(text, max(0, dot - 5), dot))


def _is_target(text: str, dot: int, end: int) -> bool:
    """Whether the attribute is one of several targets of an assignment."""
    if text[dot] != "." or text[end : end + 1] not in (",", ")", "]", " ", "\n"):
        return False
    before, after = text[max(0, dot - _MOST_BEFORE) : dot], text[end : end + _MOST_BEFORE]
    several = _OPENED.search(before), _CLOSED.match(after)
    if all(several):
        return True
    one_line = _FIRST.search(before), _LAST.match(after)
    return all(one_line) and "," in f"{before.rpartition(chr(10))[2]}{after.partition('=')[0]}"


def _agree(some: Guards, others: Guards) -> bool:
    """Whether both may hold at once."""
    return not any((name, not holds) in others for name, holds in some)


def _waits(function: str) -> bool:
    """Whether every way through the function gets a number or a truth from the device."""
    try:
        found = ast.parse(textwrap.dedent(function)).body[0]
    except (SyntaxError, ValueError, IndexError, RecursionError):
        return False
    stack: list[ast.stmt] = list(reversed(getattr(found, "body", [])))
    while stack:
        statement = stack.pop()
        if isinstance(statement, ast.With):
            stack.extend(reversed(statement.body))
        elif hasattr(statement, "body"):
            if isinstance(statement, ast.If) and _asks(statement.test):
                return True
            if any(isinstance(node, ast.Return) for node in descend(statement)):
                return False
        elif _asks(statement):
            return True
        elif isinstance(statement, ast.Return):
            return False
    return False


def _asks(node: ast.AST) -> bool:
    """``x.item()``, ``x.tolist()`` or ``bool(x.any())`` somewhere below."""
    for call in descend(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            if call.func.attr in ("item", "tolist"):
                return True
        elif isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "bool" and call.args:
            value = call.args[0]
            if (
                isinstance(value, ast.Call)
                and isinstance(value.func, ast.Attribute)
                and value.func.attr in ("any", "all")
            ):
                return True
    return False
