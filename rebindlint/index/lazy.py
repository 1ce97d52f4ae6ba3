"""Run-time code that builds something once and keeps it: the guard, and what it takes to execute it alone.

Found by the text first: a test for ``None`` or absence, and in the lines below it an assignment to the same attribute that
mentions a weight. Only files in which such a place is found are parsed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rebindlint.index.classes import ClassInfo, FunctionInfo
from rebindlint.index.hooks import Hook, is_loading_name
from rebindlint.index.modules import Module, descend

if TYPE_CHECKING:
    from rebindlint.index.tree import Index

__all__ = ["LazyPlace", "find_lazy", "lazy_hooks"]

_GUARD = re.compile(
    rb"(?:\bif[ \t][^\n]*?\b\w+\.(\w+)[ \t]+is[ \t]+(?:not[ \t]+)?None"
    rb"|\bhasattr\([ \t]*\w+[ \t]*,[ \t]*[\"'](\w+)[\"']"
    rb"|\bgetattr\([ \t]*[\w.]+[ \t]*,[ \t]*[\"'](\w+)[\"'][ \t]*,[ \t]*None[ \t]*\))"
)
_ASSIGNED = re.compile(rb"\.(\w+)\b[ \t]*(?::[^=\n]+)?=[^=]|setattr\([^\n]*[\"'](\w+)[\"']")
_SOURCE = re.compile(rb"\.\w*(?:weight|scale|bias)\w*\b(?!\w*[ \t]*\()|get\w*(?:weight|scale)\w*\(")
_BELOW = 2_700  # characters below a guard among which the attribute is assigned
_AFTER = 360
_SMALL = 40  # statements of a function that is executed as a whole
_SLICE = 12  # statements before a guard that are taken along for the names that it uses

LazyPlace = tuple[str, frozenset[str]]  # a module, and names of attributes that it may build when they are first needed


def find_lazy(index: Index) -> list[LazyPlace]:
    """Where run-time code may keep something that it derived from a weight; by the text, nothing is parsed."""
    found: list[LazyPlace] = []
    for name, source in sorted(index.sources.items()):
        raw = index.bytes.get(source.shown, b"")
        names = _candidates(raw) if b"weight" in raw or b"scale" in raw else set()
        if names:
            found.append((name, frozenset(names)))
    return found


def lazy_hooks(index: Index, place: LazyPlace) -> list[Hook]:
    """One hook for each guard of the module that binds one of the attributes in run-time code."""
    name, names = place
    module = index.module(name)
    return [hook for info in _functions(index, module) for hook in _guards(info, names)] if module is not None else []


def _candidates(raw: bytes) -> set[str]:
    """Names of attributes that are tested for absence and assigned shortly below from something that names a weight."""
    names: set[str] = set()
    for match in _GUARD.finditer(raw):
        name = match.group(1) or match.group(2) or match.group(3)
        end = match.end() + _BELOW
        assigned = next(
            (a for a in _ASSIGNED.finditer(raw, match.end(), end) if name in (a.group(1), a.group(2))), None
        )
        if assigned is not None and _SOURCE.search(raw, match.end(), assigned.end() + _AFTER):
            names.add(name.decode())
    text = raw.decode("utf-8", "replace") if names else ""
    return {name for name in names if not _is_refreshed(text, name)}


def _is_refreshed(text: str, name: str) -> bool:
    """Whether a function that belongs to loading has to do with the attribute: then it is judged there."""
    functions = [(m.start(), m.group(1)) for m in re.finditer(r"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)", text, re.M)]
    for match in re.finditer(rf"\.{name}\b|[\"']{name}[\"']", text):
        inside = next((function for start, function in reversed(functions) if start < match.start()), "__init__")
        if is_loading_name(inside) and inside not in ("__init__", "__post_init__", "create_weights"):
            return True
    return False


def _functions(index: Index, module: Module) -> Iterator[FunctionInfo]:
    for cls in index.classes_of(module):
        for name, info in cls.methods.items():
            if not is_loading_name(name):
                yield info
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef) and not is_loading_name(node.name):
            yield index.function_info(module, node)


def _guards(info: FunctionInfo, names: frozenset[str]) -> Iterator[Hook]:
    if isinstance(info.node, ast.Lambda):
        return
    bound = {_attribute(target) for node in descend(info.node) for target in _targets(node)} & names
    if not bound:
        return
    statements = sum(isinstance(node, ast.stmt) for node in descend(info.node))
    if statements <= _SMALL:
        yield _hook(info, info)
        return
    for block, position, guard in _ifs(info.node.body):
        inside = {_attribute(target) for node in descend(*guard.body) for target in _targets(node)}
        if inside & bound and _tests(guard.test, inside & bound):
            yield _hook(info, _alone(info, block[:position], guard))


def _hook(info: FunctionInfo, executed: FunctionInfo) -> Hook:
    owner: ClassInfo | None = info.owner
    return Hook(executed, owner, lazy=True)


def _ifs(body: list[ast.stmt]) -> Iterator[tuple[list[ast.stmt], int, ast.If]]:
    for position, node in enumerate(body):
        if isinstance(node, ast.If):
            yield body, position, node
        for inner in ("body", "orelse", "finalbody"):
            block = getattr(node, inner, None)
            if block and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield from _ifs(block)


def _tests(test: ast.expr, names: set[str]) -> bool:
    return any(
        (isinstance(node, ast.Attribute) and node.attr in names)
        or (isinstance(node, ast.Constant) and node.value in names)
        for node in descend(test)
    )


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign) and node.value is not None else []


def _attribute(target: ast.expr) -> str:
    return target.attr if isinstance(target, ast.Attribute) else ""


def _alone(info: FunctionInfo, before: list[ast.stmt], guard: ast.If) -> FunctionInfo:
    """The function cut down to the guard and the assignments before it that names in it come from."""
    assert isinstance(info.node, (ast.FunctionDef, ast.AsyncFunctionDef))
    wanted = {node.id for node in descend(guard) if isinstance(node, ast.Name)}
    kept: list[ast.stmt] = []
    for statement in reversed(before):
        bound = {t.id for t in _targets(statement) if isinstance(t, ast.Name)}
        imported = isinstance(statement, (ast.Import, ast.ImportFrom))
        if imported or (bound & wanted and len(kept) < _SLICE):
            kept.insert(0, statement)
            wanted |= {node.id for node in descend(statement) if isinstance(node, ast.Name)}
    node = ast.FunctionDef(
        name=info.node.name,
        args=info.node.args,
        body=[*kept, guard],
        decorator_list=[],
        returns=None,
        type_comment=None,
        lineno=info.node.lineno,
        col_offset=info.node.col_offset,
        end_lineno=info.node.end_lineno,
        end_col_offset=info.node.end_col_offset,
    )
    return FunctionInfo(node, info.module, info.owner)
