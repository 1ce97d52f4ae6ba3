"""Which attributes run-time code reads: only those can be in a captured graph."""

from __future__ import annotations

import ast
import re
import textwrap
from bisect import bisect_right
from typing import TYPE_CHECKING

from rebindlint.index.hooks import LAYER_NAMES, is_loading_name
from rebindlint.index.modules import descend

if TYPE_CHECKING:
    from rebindlint.index.classes import ClassInfo
    from rebindlint.index.tree import Index

__all__ = ["Readers"]

_SYNC = re.compile(r"\.(?:item|tolist)\(\)")
_DEF = re.compile(r"^([ \t]*)(?:async[ \t]+)?def[ \t]+(\w+)", re.M)


class Readers:
    """Answers from the text of the files, the hook's own file first; parses nothing."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._visible: dict[str, bool] = {}
        self._of_layer: dict[int, frozenset[str] | tuple[()] | None] = {}
        self._own: dict[str, bool] = {}
        self._syncs: dict[tuple[str, int], bool] = {}
        self._defs: dict[str, tuple[list[int], list[tuple[int, str]]]] = {}

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
            known = self._visible[name] = self._search(name, home)
        return known

    def is_read_of_layer(self, name: str, cls: ClassInfo) -> bool:
        """Whether run-time code may read what a hook of ``cls`` left on its layer.

        Where the class's own run-time code spells out what it reads of the layer, and hands the layer to nobody, only that
        counts, and what reads it of a part of itself, or in a layer that applies its method.
        """
        known = self._of_layer.get(id(cls.node), ())
        if known == ():
            known = self._of_layer[id(cls.node)] = self._reads_of_layer(cls)
        if known is None or name in known:
            return True
        own = self._own.get(name)
        if own is None:
            own = self._own[name] = self._search(name, "", owner=r"\.\w+") or self._search(
                name, "", owner=r"\bself", only=b"quant_method.apply"
            )
        return own

    def _reads_of_layer(self, cls: ClassInfo) -> frozenset[str] | None:
        """Names that methods of the class read of their layer at run time; None when it gets out of their hands."""
        names: set[str] = set()
        found = False
        for base in self._index.mro(cls):
            for method in base.methods.values():
                layer = next((name for name in method.positional if name in LAYER_NAMES), "")
                if layer and not is_loading_name(method.name) and not method.is_abstract:
                    found = True
                    reads = _reads(method.node, layer)
                    if reads is None:
                        return None
                    names |= reads
        return frozenset(names) if found else None

    def _search(self, name: str, home: str, owner: str = "", only: bytes = b"") -> bool:
        encoded = name.encode()
        named = r"getattr\((?!layer\b)[\w.]+,[ \t]*" if owner else ""
        pattern = re.compile(
            rf"{owner}\.{re.escape(name)}\b(?![ \t]*(?::[^=\n]*)?=[^=])|{named}[\"']{re.escape(name)}[\"']"
        )
        files = self._index.bytes
        for shown in [home, *(f for f in files if f != home)]:
            raw = files.get(shown)
            if raw is None or encoded not in raw or only not in raw or _is_warmup(shown):
                continue
            text = raw.decode("utf-8", "replace")
            for match in pattern.finditer(text):
                function, start = self._enclosing(shown, text, match.start())
                if not is_loading_name(function) and not self._synchronises(shown, text, start):
                    return True
        return False

    def _synchronises(self, shown: str, text: str, start: int) -> bool:
        """Whether the function defined at ``start`` waits for the device whatever happens: no graph can capture it."""
        known = self._syncs.get((shown, start))
        if known is None:
            end = re.compile(rf"^[ \t]{{0,{_indent(text, start)}}}[^\s#)]", re.M).search(
                text, text.index("\n", start) + 1
            )
            body = text[start : end.start() if end else len(text)]
            known = self._syncs[(shown, start)] = bool(_SYNC.search(body)) and _waits(body)
        return known

    def _enclosing(self, shown: str, text: str, offset: int) -> tuple[str, int]:
        """Name and start of the function around ``offset``; ``__init__`` for code at class or module level."""
        if shown not in self._defs:
            found = [(m.start(), len(m.group(1)), m.group(2)) for m in _DEF.finditer(text)]
            self._defs[shown] = ([f[0] for f in found], [(f[1], f[2]) for f in found])
        starts, names = self._defs[shown]
        line_start = text.rfind("\n", 0, offset) + 1
        indent = _indent(text, line_start)
        position = bisect_right(starts, line_start) - 1
        while position >= 0:
            if names[position][0] < indent:
                return names[position][1], starts[position]
            position -= 1
        return "__init__", 0


def _is_warmup(shown: str) -> bool:
    """Code that runs before anything is captured."""
    return "/warmup/" in shown


def _reads(function: ast.AST, layer: str) -> set[str] | None:
    """``layer.name`` and ``getattr(layer, "name", …)`` in a function; None when it does anything else with its layer."""
    names: set[str] = set()
    seen = 0
    nodes = descend(function)
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == layer:
            names.add(node.attr)
            seen += 1
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("getattr", "hasattr")
            and len(node.args) > 1
            and isinstance(node.args[0], ast.Name)
            and node.args[0].id == layer
            and isinstance(node.args[1], ast.Constant)
        ):
            names.add(str(node.args[1].value))
            seen += 1
    uses = sum(isinstance(node, ast.Name) and node.id == layer for node in nodes)
    return names if uses == seen else None


def _waits(function: str) -> bool:
    """Whether every way through the function calls ``.item()`` or ``.tolist()``."""
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
            if any(isinstance(node, ast.Return) for node in descend(statement)):
                return False
        elif any(
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("item", "tolist")
            for node in descend(statement)
        ):
            return True
        elif isinstance(statement, ast.Return):
            return False
    return False


def _indent(text: str, start: int) -> int:
    end = start
    while end < len(text) and text[end] in " \t":
        end += 1
    return end - start
