"""Run-time code that builds something once and keeps it: the guard, and what it takes to execute it alone.

Found by the text first: only files in which a candidate stands are parsed. What loading code refreshes is judged there. What it
only drops, run-time code builds again, elsewhere in memory.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from rebindlint.index.bindings import own_nodes
from rebindlint.index.classes import FunctionInfo
from rebindlint.index.hooks import Hook, belongs_to_loading
from rebindlint.index.lazy_text import candidates, fates, mentions_weight
from rebindlint.index.modules import FunctionNode, Module, descend

if TYPE_CHECKING:
    from rebindlint.index.tree import Index

__all__ = ["LazyPlace", "find_lazy", "lazy_hooks"]

_SMALL = 40  # statements of a function that is executed as a whole
_SLICE = 12  # statements before a guard that are taken along for the names that it uses


class LazyPlace(NamedTuple):
    """A module, the attributes that it may build when they are first needed, and those of them that loading drops."""

    module: str
    names: frozenset[str]
    dropped: frozenset[str]


class _Guard(NamedTuple):
    """A condition with the statements before it, those of the blocks around it first, and those behind it in its own block."""

    before: list[ast.stmt]
    node: ast.If
    behind: list[ast.stmt]
    nested: bool


def find_lazy(index: Index) -> list[LazyPlace]:
    """Where run-time code may keep something that it derived from a weight; by the text, nothing is parsed. After ``find_hooks``."""
    found: list[LazyPlace] = []
    for module, source in sorted(index.sources.items()):
        raw = index.bytes.get(source.shown, b"")
        names = candidates(raw) if b"weight" in raw or b"scale" in raw else set()
        if names:
            text = raw.decode("utf-8", "replace")
            done = fates(text, names, lambda function: belongs_to_loading(index, function))
            left = frozenset(name for name in names if done[name] != "refreshed")
            if left:
                found.append(LazyPlace(module, left, frozenset(n for n in left if done[n] == "dropped")))
    return found


def lazy_hooks(index: Index, place: LazyPlace) -> list[Hook]:
    """One hook for each guard of the module that binds one of the attributes in run-time code; a whole function before its parts."""
    module = index.module(place.module)
    if module is None:
        return []
    judged = _called_by_loading(index, module)
    return [
        Hook(executed, info.owner, lazy=True, dropped=place.dropped, cut=executed is not info)
        for info in _functions(index, module)
        if info.name not in judged and _mentions_weight(index, info)
        for executed in _guarded(info, place.names, judged)
    ]


def _mentions_weight(index: Index, info: FunctionInfo) -> bool:
    """As ``candidates`` asks it of the lines around a guard, which may belong to other functions."""
    raw = index.bytes.get(info.module.shown, b"")
    starts = index.pure.get(("lines", info.module.shown))
    if starts is None:
        starts = index.pure[("lines", info.module.shown)] = [0, *(m.end() for m in re.finditer(rb"\r\n?|\n", raw))]
    last = info.node.end_lineno or info.node.lineno
    return mentions_weight(raw, starts[info.node.lineno - 1], starts[last] if last < len(starts) else len(raw))


def _called_by_loading(index: Index, module: Module) -> set[str]:
    """Names of what functions of the module that belong to loading call: it is judged with them."""
    return {
        node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        for cls in index.classes_of(module)
        for name, info in cls.methods.items()
        if belongs_to_loading(index, name) and name not in ("__init__", "__post_init__")
        for node in descend(info.node)
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name))
    }


def _functions(index: Index, module: Module) -> Iterator[FunctionInfo]:
    for cls in index.classes_of(module):
        for name, info in cls.methods.items():
            if not belongs_to_loading(index, name):
                yield info
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef):
            for inner in descend(node):  # also those that it makes, to stand in for a method
                if isinstance(inner, ast.FunctionDef) and not belongs_to_loading(index, inner.name):
                    yield index.function_info(module, inner)


def _guarded(info: FunctionInfo, names: frozenset[str], judged: set[str]) -> Iterator[FunctionInfo]:
    """The function as a whole where it is small, and cut down to each guard where that is large or lies behind conditions."""
    if isinstance(info.node, ast.Lambda):
        return
    nodes = own_nodes(info.node)
    own = {name for node in nodes for name in _bound(node)} & names
    bound = own | {name for node in nodes for name in _bound_by_call(node, info, judged)} & names
    if not bound:
        return
    small = bool(own) and sum(isinstance(node, ast.stmt) for node in nodes) <= _SMALL
    if small:
        yield info
    aliases = _aliases(nodes, bound)
    for guard in _ifs(info.node.body):
        if (small and not guard.nested and not _leaves(guard.before)) or not _tests(guard.node.test, bound, aliases):
            continue
        inside = descend(*guard.node.body)
        if any(name in bound for n in inside for name in (*_bound(n), *_bound_by_call(n, info, judged))):
            yield _alone(info, guard.before, [guard.node])
        elif isinstance(guard.node.body[-1], ast.Return):
            last = _last_binding(guard.behind, bound)
            if 0 <= last < _SMALL:
                yield _alone(info, guard.before, [guard.node, *guard.behind[: last + 1]])


def _leaves(statements: list[ast.stmt]) -> bool:
    return any(isinstance(s, ast.If) and isinstance(s.body[-1], ast.Return) for s in statements)


def _last_binding(statements: list[ast.stmt], names: set[str]) -> int:
    return max((i for i, s in enumerate(statements) for node in descend(s) if names & set(_bound(node))), default=-1)


def _ifs(body: list[ast.stmt], before: list[ast.stmt] | None = None, *, nested: bool = False) -> Iterator[_Guard]:
    around = before or []
    for position, node in enumerate(body):
        upto = [*around, *body[:position]]
        if isinstance(node, ast.If):
            yield _Guard(upto, node, body[position + 1 :], nested)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for inner in ("body", "orelse", "finalbody"):
            block = getattr(node, inner, None)
            if block:
                yield from _ifs(block, upto, nested=nested or isinstance(node, ast.If))


def _tests(test: ast.expr, names: set[str], aliases: set[str]) -> bool:
    return any(
        (isinstance(node, ast.Attribute) and node.attr in names)
        or (isinstance(node, ast.Constant) and node.value in names)
        or (isinstance(node, ast.Name) and node.id in aliases)
        for node in descend(test)
    )


def _aliases(nodes: list[ast.AST], names: set[str]) -> set[str]:
    """Local names that hold one of the attributes, or one of its elements."""
    return {
        target.id
        for node in nodes
        if isinstance(node, (ast.Assign, ast.NamedExpr)) and _tests(node.value, names, set())
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return [t for target in node.targets for t in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return [node.target] if isinstance(node, ast.AnnAssign) and node.value is not None else []


def _bound(node: ast.AST) -> list[str]:
    """Names of the attributes that a statement binds, itself or a slot of theirs."""
    found = [t.value if isinstance(t, ast.Subscript) else t for t in _targets(node)]
    names = [target.attr for target in found if isinstance(target, ast.Attribute)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr":
        names += [a.value for a in node.args[1:2] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    return names


def _bound_by_call(node: ast.AST, info: FunctionInfo, judged: set[str]) -> list[str]:
    """Names of the attributes that a method of the same class binds which a statement only calls; one that loading calls refreshes them."""
    called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    if not (isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and info.owner is not None):
        return []
    method = info.owner.methods.get(called.attr) if called.value.id == info.self_name else None
    if method is None or called.attr in judged:
        return []
    return [name for inner in own_nodes(method.node) for name in _bound(inner)]


def _alone(info: FunctionInfo, before: list[ast.stmt], statements: list[ast.stmt]) -> FunctionInfo:
    """The function cut down to some statements and the assignments before them that names in them come from."""
    assert isinstance(info.node, (ast.FunctionDef, ast.AsyncFunctionDef))
    wanted = {node.id for node in descend(*statements) if isinstance(node, ast.Name)}
    kept: list[ast.stmt] = []
    for statement in reversed(before):
        bound = {t.id for t in _targets(statement) if isinstance(t, ast.Name)}
        imported = isinstance(statement, (ast.Import, ast.ImportFrom))
        if imported or (bound & wanted and len(kept) < _SLICE):
            kept.insert(0, statement)
            wanted |= {node.id for node in descend(statement) if isinstance(node, ast.Name)}
    return FunctionInfo(_cut(info.node, [*kept, *statements]), info.module, info.owner)


def _cut(node: FunctionNode, body: list[ast.stmt]) -> ast.FunctionDef:
    return ast.FunctionDef(
        name=node.name,
        args=node.args,
        body=body,
        decorator_list=[],
        returns=None,
        type_comment=None,
        lineno=node.lineno,
        col_offset=node.col_offset,
        end_lineno=node.end_lineno,
        end_col_offset=node.end_col_offset,
    )
