"""What ``load_weights`` of a model does besides loading: methods that it calls and that bind something, and its own statements.

Found by the text first: which functions of the loader's file, and of the files that this imports, a loading function calls
by name, over a few steps, and whether one of them assigns an attribute, registers a tensor or changes one in place. Only
files in which such a function stands are parsed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from rebindlint.index.classes import ClassInfo, FunctionInfo
from rebindlint.index.modules import at_line_starts, text_of

if TYPE_CHECKING:
    from rebindlint.index.tree import Index

__all__ = [
    "LAYER_NAMES",
    "LOADED",
    "LOADERS",
    "WEIGHTS",
    "Called",
    "Loader",
    "binding_loaders",
    "bodies",
    "find_loaders",
    "functions_called",
    "is_module_annotation",
    "overriding_classes",
]

LAYER_NAMES = ("layer", "module", "mod", "model")
WEIGHTS = "weights"  # what loading functions call the names and tensors of a checkpoint
LOADED = "loaded_weight"  # what weight loaders call one of its tensors
LOADERS = re.compile(
    rb"^([ \t]*)(?:async[ \t]+)?def[ \t]+(_?load_weights|wake_up|load_weights_and_postprocess)\b", re.M
)
_DEF_WORD = re.compile(rb"def[ \t]")
_GIVEN_WEIGHTS = re.compile(rb"\s*\(\s*\w+\s*,\s*\w*weights\b")
_DEFINED = re.compile(rb"def (\w+)")  # begins with a literal, which is what makes it fast
_CALLED = re.compile(
    rb"\.[ \t]*(\w+)[ \t]*\(|\bgetattr\([^\n]*?[\"'](\w+)[\"']|(?<![\w.])(\w+)\(\s*(?:self\b|layer\b|module\b|model\b)"
)
# an attribute gets something that may be a tensor, or one is registered or changed in place; copying into one is loading
_BINDS = re.compile(
    rb"^[ \t]*\w[\w.\[\]]*\.\w+(?:[ \t]*:[^=\n]+)?[ \t]*[*/+-]?=(?!=)[ \t]*+(?:\w+[ \t]*=(?!=)[ \t]*+)?+"
    rb"(?!(?:None|True|False)\b|[\d\"']|\[\]|\{\}|(?:any|all|len|str|bool|set|frozenset|isinstance|hasattr)\()"
    rb"|\bregister_(?:buffer|parameter)\(|\bsetattr\(|\.(?:mul|div|add|sub|clamp|neg|pow|sqrt)_\("
    rb"|\b(?:replace_parameter|copy_or_rebind_param)\(",
    re.M,
)
# it is declared to give a list, tuple or dictionary of numbers and strings: what it keeps of them is no tensor
_GIVES_PLAIN = re.compile(
    rb"\w+\([^()]*\)[ \t]*->[ \t]*(?:list|tuple|dict|List|Tuple|Dict)\[(?:\b(?:list|tuple|dict|str|int|float|bool|None)\b|[\[\], |.])+:"
)
_LOOP = re.compile(rb"^([ \t]*)for [^\n]* in [^\n]*\bweights\b[^\n]*:[ \t]*$", re.M)
_STEPS = 3  # calls between a loader and what binds
_MOST = 4  # classes below that a method is executed for as well


def bodies(raw: bytes) -> Iterator[bytes]:
    """The text of each loading function, up to the next line that is indented no deeper."""
    for match in LOADERS.finditer(raw):
        yield _text(raw, match.end(), len(match.group(1)))


def _text(raw: bytes, start: int, indent: int) -> bytes:
    end = re.compile(rb"^[ \t]{0,%d}[^\s#)]" % indent, re.M).search(raw, start)
    return raw[start : end.start() if end else len(raw)]


@dataclass(frozen=True, slots=True)
class Loader:
    """A loading function: the module that it stands in, its name there, its first line, and its text."""

    module: str
    name: str
    row: int
    text: bytes
    of_model: bool  # it is given weights, again and again; an engine's own are given a model, or nothing

    @property
    def binds(self) -> bool:
        return _BINDS.search(self.text) is not None


def find_loaders(index: Index) -> list[Loader]:
    """The loading functions of the tree; nothing is parsed."""
    found = []
    for module, source in sorted(index.sources.items()):
        raw = index.bytes.get(source.shown, b"")
        if b"load_weights" in raw or b"wake_up" in raw:
            for match in at_line_starts(LOADERS, _DEF_WORD, raw):
                name, row = match.group(2).decode(), raw.count(b"\n", 0, match.start()) + 1
                text = _text(raw, match.end(), len(match.group(1)))
                of_model = name.endswith("load_weights") and _GIVEN_WEIGHTS.match(text) is not None
                found.append(Loader(module, name, row, text, of_model))
    return found


@dataclass(eq=False)
class _Definition:
    module: str
    name: str
    row: int
    text: bytes
    calls: dict[int, _Definition] = field(default_factory=dict)

    @cached_property
    def binds(self) -> bool:
        return _BINDS.search(self.text) is not None


class _Calls:
    """Who calls whom by name, within a file and what it imports."""

    def __init__(self, index: Index, ignored: frozenset[bytes]) -> None:
        self._index, self._ignored = index, ignored
        self._tables: dict[str, dict[bytes, list[int]]] = {}
        self._scopes: dict[str, tuple[str, ...]] = {}
        self._definitions: dict[tuple[str, int], _Definition] = {}

    def of(self, text: bytes, home: str, loader: str) -> list[_Definition]:
        names = {name for groups in _CALLED.findall(text) for name in groups if name} - self._ignored
        scope = self._scope(home) if home == loader else dict.fromkeys((*self._scope(home), *self._scope(loader)))
        found = []
        for module in scope:
            table = self._tables[module] if module in self._tables else self._table(module)
            if names.isdisjoint(table):
                continue
            for name in sorted(names & table.keys()):
                found += [self._definition(module, name, start) for start in table[name]]
        return found

    def follow(self, text: bytes, loader: str, reached: dict[int, _Definition]) -> None:
        """Adds what a part of a loading function calls, over several steps."""
        seen: set[int] = set()
        queue = self.of(text, loader, loader)
        for _ in range(_STEPS):
            new = {id(definition): definition for definition in queue if id(definition) not in seen}
            seen |= new.keys()
            reached.update(new)
            queue = []
            for definition in new.values():
                inner = self.of(definition.text, definition.module, loader)
                definition.calls.update((id(called), called) for called in inner)
                queue += inner

    def _scope(self, module: str) -> tuple[str, ...]:
        """The module and those that it imports, through packages that only hand on what others define."""
        known = self._scopes.get(module)
        if known is None:
            found = dict.fromkeys((module, *self._index.imports_of(module)))
            for other in list(found):
                if self._index.sources[other].path.stem == "__init__":
                    found.update(dict.fromkeys(self._index.imports_of(other)))
            known = self._scopes[module] = tuple(found)
        return known

    def _table(self, module: str) -> dict[bytes, list[int]]:
        made: dict[bytes, list[int]] = {}
        self._tables[module] = made
        for match in _DEFINED.finditer(self._index.bytes.get(self._index.sources[module].shown, b"")):
            made.setdefault(match.group(1), []).append(match.start())
        return made

    def _definition(self, module: str, name: bytes, start: int) -> _Definition:
        known = self._definitions.get((module, start))
        if known is None:
            raw = self._index.bytes[self._index.sources[module].shown]
            line = raw.rfind(b"\n", 0, start) + 1
            before = raw[line:start]
            stands_alone = before.strip() in (b"", b"async")
            is_one = stands_alone and _GIVES_PLAIN.match(raw, start + 4) is None
            text = _text(raw, start + 4, len(before) - len(before.lstrip())) if is_one else b""
            row = raw.count(b"\n", 0, start) + 1
            known = self._definitions[module, start] = _Definition(module, name.decode(), row, text)
        return known


@dataclass(frozen=True, slots=True, eq=False)
class Called:
    """``between``: only between one weight and the next, so that a layerwise reload has not yet put back what it remembers."""

    function: FunctionInfo
    between: bool


def functions_called(index: Index, loaders: list[Loader], ignored: frozenset[str]) -> list[Called]:
    """Methods of modules, and functions given one, that loading functions call, over several steps, and that lead to a binding."""
    calls = _Calls(index, frozenset(name.encode() for name in ignored))
    between: dict[int, _Definition] = {}
    reached: dict[int, _Definition] = {}
    for loader in (loader for loader in loaders if loader.of_model):
        inside, outside = _apart(loader.text)
        calls.follow(outside, loader.module, reached)
        if inside:
            calls.follow(inside, loader.module, between)
    every = {**reached, **between}
    found = {key: _function(index, every[key]) for key in _leading(every)}
    of_modules = {key: every[key] for key, info in found.items() if info is not None and _has_module(index, info)}
    return [Called(info, key not in reached) for key in _leading(of_modules) if (info := found[key]) is not None]


def _apart(text: bytes) -> tuple[bytes, bytes]:
    """What stands inside of loops over the weights, and everything else."""
    inside, outside, start = [], [], 0
    for match in _LOOP.finditer(text):
        if match.start() >= start:
            block = _text(text, match.end(), len(match.group(1)))
            outside.append(text[start : match.end()])
            inside.append(block)
            start = match.end() + len(block)
    return b"\n".join(inside), b"\n".join([*outside, text[start:]])


def _leading(definitions: dict[int, _Definition]) -> list[int]:
    """Which of them bind something, or call others of them that do."""
    callers: dict[int, list[int]] = {}
    for key, definition in definitions.items():
        for called in definition.calls:
            callers.setdefault(called, []).append(key)
    stack = [key for key, definition in definitions.items() if definition.binds]
    leading: set[int] = set()
    while stack:
        key = stack.pop()
        if key not in leading:
            leading.add(key)
            stack += callers.get(key, ())
    return [key for key in definitions if key in leading]


def _has_module(index: Index, info: FunctionInfo) -> bool:
    """A method of modules, or of a class that stands beside one in the bases of others; or a function that is given one."""
    if info.owner is not None:
        cls = info.owner
        beside = not cls.node.bases and any(index.is_module(below) for below in index.subclasses(cls))
        return index.is_module(cls) or beside
    spec = info.node.args
    return any(a.arg in LAYER_NAMES or is_module_annotation(a.annotation) for a in [*spec.posonlyargs, *spec.args])


def is_module_annotation(annotation: ast.expr | None) -> bool:
    """Whether it says ``nn.Module``, also in quotes."""
    return annotation is not None and text_of(annotation).strip("'\"").endswith("nn.Module")


def _function(index: Index, definition: _Definition) -> FunctionInfo | None:
    module = index.module(definition.module)
    if module is None:
        return None
    for cls in index.classes_of(module):
        info = cls.methods.get(definition.name)
        if info is not None and info.node.lineno == definition.row:
            return info if not info.is_property else None
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef) and node.lineno == definition.row:
            return index.function_info(module, node)
    return None


def binding_loaders(index: Index, loaders: list[Loader]) -> list[FunctionInfo]:
    """Loading functions that bind something themselves, besides what they load."""
    found = (_function(index, _Definition(x.module, x.name, x.row, x.text)) for x in loaders if x.of_model and x.binds)
    return [info for info in found if info is not None and info.owner is not None and WEIGHTS in info.positional[1:2]]


def overriding_classes(index: Index, info: FunctionInfo, names: frozenset[str]) -> list[ClassInfo]:
    """Classes that inherit the method and override one of those that it calls, one for each choice of these, the first few."""
    called = [name for on_super, name in info.own_calls if name in names and not on_super]
    if info.owner is None or not called:
        return []
    found = {tuple(id(index.method(info.owner, name)) for name in called): info.owner}
    for below in sorted(index.subclasses(info.owner), key=lambda c: (c.qualified, c.node.lineno)):
        if index.method(below, info.name) is info:
            found.setdefault(tuple(id(index.method(below, name)) for name in called), below)
    return list(found.values())[1 : _MOST + 1]
