"""Which functions mention a name, and which may be given a layer, from the text of the files: nothing is parsed."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from rebindlint.index.hooks import LAYER_NAMES, is_loading_name
from rebindlint.model import Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rebindlint.index.classes import ClassInfo, FunctionInfo
    from rebindlint.index.tree import Index

__all__ = ["Mentions", "indent_of"]

_CLASS = re.compile(r"^([ \t]*)class[ \t]+(\w+)", re.M)
_DEF = re.compile(r"^([ \t]*)(?:async[ \t]+)?def[ \t]+(\w+)", re.M)
_IMPORTED = re.compile(r"\bimport[ \t]*\([\w\s,]*$|\bimport[ \t][\w \t,]*$")
_IMPORT_LENGTH = 600  # characters of an import that are looked at
_HANDED = re.compile(rf"\s*\(\s*(?:\w+=)?({'|'.join(LAYER_NAMES)})\b(?!\.)")
_OWN = re.compile(r"\b(?:self|super\(\))\.$")
_CREATING = frozenset({"__init__", "create_weights"})
# what torch itself calls of a module, and what Python does
_CALLED_BY_TORCH = re.compile(
    r"__\w+__|forward|train|extra_repr|reset_parameters|(?:get|set)_extra_state|_apply|_(?:load_from|save_to)_state_dict"
)
_HARMLESS_DECORATORS = frozenset(
    {"staticmethod", "classmethod", "property", "cached_property", "no_grad", "inference_mode"}
)
_NO_CALLERS = re.compile(
    r"(?:torch\.)?nn\.(?:modules\.module\.)?Module|object|(?:abc\.)?ABC|(?:typing\.)?(?:Generic|Protocol)"
)
_COMPUTED = re.compile(
    r"\bgetattr\((?:\s*|[ \t]*(?:self|cls),[ \t]*(?![\"'])\S.*)$"
)  # maybe a name that is put together
_MOST_NAMES = 4  # of methods that call one another until loading does

Found = tuple[list[int], list[tuple[int, str]]]  # where definitions start; how far they are indented, and their names


class Mentions:
    """Asked about names alone: functions of the same name are taken for one."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._loads: dict[str, frozenset[str]] = {}
        self._own: dict[str, bool] = {}
        self._given: dict[str, bool] = {}
        self._around: dict[str, frozenset[str]] = {}
        self._defs: dict[str, Found] = {}
        self._classes: dict[str, Found] = {}

    def may_be_of_layer(self, shown: str, text: str, start: int) -> bool:
        """Whether a variable that something is read of at run time may hold any layer: what a method is given is the layer of its
        own class, and a function's that only such methods call.
        """
        taker = self._taker(shown, text, start, text[start : text.find(".", start)])
        if taker is not None and self.class_around(shown, text, start):
            return False
        if self.run_by(self.enclosing(shown, text, start)[0]):
            return False
        if taker is None:
            return True
        if taker not in self._given:
            self._given[taker] = self._is_given_by_methods(taker)
        return not self._given[taker]

    def _taker(self, shown: str, text: str, start: int, variable: str) -> str | None:
        """The function around a place that is given a layer under the name of the variable."""
        found = _around(self._defs, _DEF, shown, text, start) if variable in LAYER_NAMES else None
        while found is not None and not _takes_layer(text, found[1], variable):
            found = _around(self._defs, _DEF, shown, text, found[1])
        return found[0] if found is not None else None

    def _is_given_by_methods(self, name: str) -> bool:
        """Whether all that call a function are loading or methods that hand on the layer that they are given themselves."""
        names = [name]
        for called in names:
            for function, shown, text, start in self.mentions(called):
                if is_loading_name(function) or function in names:
                    continue
                handed = _HANDED.match(text, text.find(called, start) + len(called))
                taker = self._taker(shown, text, start, handed.group(1)) if handed is not None else None
                if taker is None:
                    return False
                if not self.class_around(shown, text, start) and taker not in names:
                    names.append(taker)
            if len(names) > _MOST_NAMES:
                return False
        return True

    def only_loads(self, method: FunctionInfo) -> bool:
        """Whether nothing but loading runs the method, as far as its name tells, and what it read does not get out of it.

        A hook may keep what a method returns where run-time code reads it. What ``create_weights`` was given is older than
        anything that a hook binds.
        """
        known = self.run_by(method.name)
        return bool(known) and (known <= _CREATING or not method.returns)

    def only_own(self, method: FunctionInfo) -> bool:
        """Whether nothing but run-time methods of the same object calls the method: it is read where these stand."""
        name = method.name
        if name not in self._own:
            called = False
            for around, _, text, start in self.mentions(name):
                called = _OWN.search(text, max(0, start - 8), start + 1) is not None and not self._loads_in(around)
                if not called:
                    break
            self._own[name] = called
        return self._own[name]

    def _loads_in(self, function: str) -> bool:
        return is_loading_name(function) or bool(self.run_by(function))

    def run_by(self, name: str) -> frozenset[str]:
        """The functions of loading that run a function or what runs it; none where others do, or where nobody does."""
        if name not in self._loads:
            self._loads[name] = self._loading_behind(name)
        return self._loads[name]

    def _loading_behind(self, name: str) -> frozenset[str]:
        names, found = [name], set[str]()
        for mentioned in names:
            around = self._mention(mentioned)
            found |= {f for f in around if is_loading_name(f)}
            names += [f for f in around - found if f not in names]
            if not around or len(names) > _MOST_NAMES:
                return frozenset()
        return frozenset(found)

    def _mention(self, name: str) -> frozenset[str]:
        """The functions that mention another, ``__init__`` for code at class or module level; no more of them once they are too many
        to be followed.
        """
        known = self._around.get(name)
        if known is None:
            found: set[str] = set()
            others = 0
            for function, _, _, _ in self.mentions(name):
                others += function not in found and function != name and not is_loading_name(function)
                found.add(function)
                if others >= _MOST_NAMES:
                    break
            known = self._around[name] = frozenset(found)
        return known

    def is_called_by_nobody(self, method: FunctionInfo) -> bool:
        """Whether no file mentions the method, and nothing outside the tree can be meant to call it.

        An engine calls the run-time code of its modules itself. What else is public may be there for whoever uses it, and a
        class outside the tree may call what those below it define.
        """
        owner, name = method.owner, method.name
        if owner is None or _CALLED_BY_TORCH.fullmatch(name):
            return False
        if set(owner.methods.get(name, method).decorators) - _HARMLESS_DECORATORS:
            return False
        if not name.startswith("_") and not self._is_of_engine(owner):
            return False
        family = {id(base): base for member in self._index.subclasses(owner) for base in self._index.mro(member)}
        if not all(_NO_CALLERS.fullmatch(base) for cls in family.values() for base in self._index.externals(cls)):
            return False
        if any(_COMPUTED.search(text) for cls in family.values() for text in _body(cls)):
            return False
        return not any(True for _ in self.mentions(name, owner.module.shown))

    def _is_of_engine(self, cls: ClassInfo) -> bool:
        name = cls.module.name
        reloads = self._index.protocol_of(name) is Protocol.LAYERWISE and not self._index.is_of_plugin(name)
        return reloads and self._index.is_module(cls)

    def mentions(self, name: str, home: str = "") -> Iterator[tuple[str, str, str, int]]:
        """The functions that mention another, with file, its text and the place; those of the file ``home`` first."""
        encoded = name.encode()
        pattern = re.compile(
            rf"\.{name}\b|[\"']{name}[\"']|(?<!def )\b{name}[ \t]*\(|[=(,\[]\s*{name}\s*[,)\]\n]|\breturn[ \t]+{name}\b"
        )
        files = self._index.bytes
        for shown in [home, *(f for f in files if f != home)] if home in files else files:
            raw = files[shown]
            if encoded in raw:
                text = raw.decode("utf-8", "replace")
                for match in pattern.finditer(text):
                    start = match.start()
                    if not _IMPORTED.search(text, max(0, start - _IMPORT_LENGTH), start + 1):
                        yield self.enclosing(shown, text, start)[0], shown, text, start

    def enclosing(self, shown: str, text: str, offset: int) -> tuple[str, int]:
        """Name and start of the function around ``offset``; ``__init__`` for code at class or module level."""
        return _around(self._defs, _DEF, shown, text, offset) or ("__init__", 0)

    def class_around(self, shown: str, text: str, offset: int) -> str:
        """Name of the class around ``offset``; empty where there is none."""
        return (_around(self._classes, _CLASS, shown, text, offset) or ("", 0))[0]


def _around(
    known: dict[str, Found], pattern: re.Pattern[str], shown: str, text: str, offset: int
) -> tuple[str, int] | None:
    """Name and start of the innermost definition around ``offset`` that the pattern finds."""
    if shown not in known:
        found = [(m.start(), len(m.group(1)), m.group(2)) for m in pattern.finditer(text)]
        known[shown] = ([f[0] for f in found], [(f[1], f[2]) for f in found])
    starts, names = known[shown]
    line_start = text.rfind("\n", 0, offset) + 1
    indent = indent_of(text, line_start)
    for position in range(bisect_right(starts, line_start) - 1, -1, -1):
        if names[position][0] < indent:
            return names[position][1], starts[position]
    return None


def _body(cls: ClassInfo) -> list[str]:
    """The lines of a class."""
    return cls.module.lines[cls.node.lineno - 1 : cls.node.end_lineno]


def _takes_layer(text: str, definition: int, variable: str) -> bool:
    """Whether the function defined there has the variable among its parameters."""
    signature = text[definition : text.find(":\n", definition) + 1]
    return re.search(rf"[(,]\s*{variable}\b", signature) is not None


def indent_of(text: str, start: int) -> int:
    end = start
    while end < len(text) and text[end] in " \t":
        end += 1
    return end - start
