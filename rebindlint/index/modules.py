"""One module of the linted tree: its names and where they come from, parsed on demand."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Assigned",
    "Defined",
    "Imported",
    "Module",
    "Name",
    "at_line_starts",
    "descend",
    "is_type_checking",
    "text_of",
]

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_GLOBAL = re.compile(r"^[ \t]+global[ \t]+([\w, \t]+)", re.M)


@dataclass(frozen=True, slots=True)
class Imported:
    """``name`` of ``module``, or the module itself when ``name`` is empty."""

    module: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Defined:
    node: FunctionNode | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Assigned:
    value: ast.expr
    annotation: ast.expr | None = None


Name = Imported | Defined | Assigned


@dataclass(slots=True, eq=False)
class Module:
    """``name`` is the dotted name from the import root, ``shown`` the file as the user would write it."""

    name: str
    shown: str
    is_package: bool
    tree: ast.Module
    text: str
    names: dict[str, Name] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    imports: set[str] = field(default_factory=set)
    _lines: list[str] = field(default_factory=list)
    _rebound: frozenset[str] | None = None

    def __post_init__(self) -> None:
        unconditional = set(self.tree.body)
        for node in _top_level(self.tree.body):
            self._declare(node, chosen=node not in unconditional)

    @property
    def lines(self) -> list[str]:
        """The physical lines as the parser counts them."""
        if not self._lines:
            self._lines.extend(re.split(r"\r\n|\n|\r", self.text))
        return self._lines

    def _assign(self, name: str, new: Assigned, chosen: bool) -> None:
        known = self.names.get(name)
        if known is None or isinstance(known, Assigned):
            differs = known is not None and ast.dump(known.value) != ast.dump(new.value)
            self.names[name] = Assigned(_UNKNOWN, new.annotation) if chosen and differs else new

    @property
    def rebound(self) -> frozenset[str]:
        """Names that some function declares ``global``."""
        if self._rebound is None:
            lines = _GLOBAL.findall(self.text)
            self._rebound = frozenset(name.strip() for line in lines for name in line.split(","))
        return self._rebound

    def _declare(self, node: ast.stmt, *, chosen: bool) -> None:
        """``chosen``: it stands in a branch. Where branches assign different things, nothing says which of them holds."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self.names[node.name] = Defined(node)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                for name in _names_of(target):
                    self._assign(name, Assigned(node.value if isinstance(target, ast.Name) else _UNKNOWN), chosen)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if node.value is _UNKNOWN:  # declared for type checkers
                self.names.setdefault(node.target.id, Assigned(node.value, node.annotation))
            elif node.value is not None:
                self._assign(node.target.id, Assigned(node.value, node.annotation), chosen)
        else:
            for alias, imported in imported_names(node, self.name, self.is_package):
                self.imports.add(imported.module)
                if alias == "*":
                    self.stars.append(imported.module)
                else:
                    self.names.setdefault(alias, imported)


_UNKNOWN = ast.Name("<unpacked>", ast.Load(), lineno=0, col_offset=0, end_lineno=0, end_col_offset=0)


def _names_of(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from _names_of(item)


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when the module is imported, whatever branch they stand in."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            if is_type_checking(node.test):
                yield from (_declared_only(inner) for inner in _top_level(node.body))
                continue
            yield from _top_level(node.body)
            yield from _top_level(node.orelse)
        elif isinstance(node, (ast.Try, ast.TryStar)):
            yield from _top_level(node.body)
            for handler in node.handlers:
                yield from _top_level(handler.body)
            yield from _top_level(node.orelse)
        elif isinstance(node, ast.With):
            yield from _top_level(node.body)


def is_type_checking(test: ast.expr) -> bool:
    """``if TYPE_CHECKING:``, which no run takes."""
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _declared_only(node: ast.stmt) -> ast.stmt:
    """``NAME: T = value`` for type checkers alone: the value is a default in the best of cases."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return ast.copy_location(ast.AnnAssign(node.target, node.annotation, _UNKNOWN, node.simple), node)
    return node


def imported_names(node: ast.stmt, module: str, is_package: bool) -> Iterator[tuple[str, Imported]]:
    """The names that an import statement in ``module`` binds, relative imports made absolute."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname:
                yield alias.asname, Imported(alias.name)
            else:
                yield alias.name.split(".")[0], Imported(alias.name.split(".")[0])
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parts = module.split(".")
            drop = node.level - 1 if is_package else node.level
            parts = parts[: len(parts) - drop] if drop else parts
            base = ".".join([*parts, base] if base else parts)
        for alias in node.names:
            yield alias.asname or alias.name, Imported(base, "" if alias.name == "*" else alias.name)


def at_line_starts(pattern: re.Pattern[bytes], inside: re.Pattern[bytes], raw: bytes) -> Iterator[re.Match[bytes]]:
    """What ``finditer`` gives for a pattern that begins with ``^``, in a third of the time: a search is fast for what begins
    with a literal, as ``inside`` does. The pattern has that in its first line.
    """
    end = 0
    for found in inside.finditer(raw):
        start = raw.rfind(b"\n", 0, found.start()) + 1
        match = pattern.match(raw, start) if start >= end else None
        if match is not None:
            yield match
            end = match.end()


def text_of(node: ast.AST) -> str:
    """``ast.unparse``, once for each node: it takes longer than executing most statements."""
    known = node.__dict__.get("_text")
    if known is None:
        known = node.__dict__["_text"] = ast.unparse(node)
    return str(known)


# Fields of any kind of node that are looked into for nothing: plain values, and ``ctx``, of which nothing is asked by itself.
_PLAIN = frozenset(
    (
        "ctx",
        "id",
        "attr",
        "arg",
        "kind",
        "type_comment",
        "level",
        "module",
        "asname",
        "simple",
        "is_async",
        "conversion",
    )
)
_FIELDS: dict[type, tuple[str, ...]] = {ast.Constant: ()}  # of the kinds of nodes that were met


def _fields(kind: type[ast.AST]) -> tuple[str, ...]:
    known = _FIELDS[kind] = tuple(name for name in kind._fields if name not in _PLAIN)
    return known


def descend(*roots: ast.AST, skipped: tuple[type[ast.AST], ...] = ()) -> list[ast.AST]:
    """``ast.walk`` over several roots without ``ctx``, in no particular order and in a sixth of its time.

    What is below a node of a kind in ``skipped`` is left out.
    """
    found: list[ast.AST] = []
    stack: list[Any] = list(roots)
    while stack:
        node = stack.pop()
        fields = _FIELDS.get(node.__class__)
        if fields is None:
            if not isinstance(node, ast.AST):  # in lists beside nodes
                continue
            fields = _fields(node.__class__)
        found.append(node)
        if fields and node.__class__ not in skipped:
            attributes = node.__dict__
            for name in fields:
                value = attributes.get(name)
                if value.__class__ is list:
                    stack += value
                elif value is not None:
                    stack.append(value)
    return found
