"""What a call hands to a function: which variables go to which parameters, and which names its strings spell."""

from __future__ import annotations

import ast
from typing import TypeGuard

from rebindlint.index.classes import FunctionInfo
from rebindlint.index.modules import descend

__all__ = ["Escaped", "Names", "bound_inside", "given", "is_name", "name_of", "spelt"]

_MOST_VARIABLES = 3  # that a name goes through
Names = tuple[tuple[str, str], ...]  # parameters that are given a name by the call


class Escaped(Exception):
    """Something that cannot be followed gets the whole layer."""


def is_name(node: ast.AST, name: str) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and node.id == name and bool(name)


def bound_inside(info: FunctionInfo, name: str) -> ast.AST | None:
    """What in the function itself binds the name."""
    if name in _parameter_names(info):
        return info.node.args
    for node in descend(info.node):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name and node is not info.node:
            return node
        if isinstance(node, (ast.ImportFrom, ast.Import)) and any((a.asname or a.name) == name for a in node.names):
            return node
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return node
    return None


def name_of(node: ast.expr, names: Names) -> str | None:
    """The string that an expression is for certain."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    return dict(names).get(node.id) if isinstance(node, ast.Name) else None


def spelt(node: ast.expr, info: FunctionInfo, names: Names, depth: int = 0) -> list[str]:
    """The names that an expression may come to, ``*`` for what is put into them."""
    name = name_of(node, names)
    if name is not None:
        return [name]
    if isinstance(node, ast.JoinedStr):
        return ["".join(str(v.value) if isinstance(v, ast.Constant) else "*" for v in node.values)]
    if isinstance(node, ast.IfExp):
        return [*spelt(node.body, info, names, depth), *spelt(node.orelse, info, names, depth)]
    if not isinstance(node, ast.Name) or node.id in _parameter_names(info) or depth > _MOST_VARIABLES:
        raise Escaped
    stores = [n for n in descend(info.node) if is_name(n, node.id) and isinstance(n.ctx, ast.Store)]
    values = [a.value for a in info.assignments if len(a.targets) == 1 and a.targets[0] in stores]
    if not values or len(values) != len(stores):
        raise Escaped
    return [found for value in values for found in spelt(value, info, names, depth + 1)]


def _parameter_names(info: FunctionInfo) -> set[str]:
    return {*info.positional, *(name for name, _ in info.keyword_only)}


def given(info: FunctionInfo, call: ast.Call, bound: bool, layer: str) -> list[tuple[str, ast.expr]]:
    """The parameters with what goes to them, as far as the call shows it; where the layer goes has to be seen."""
    positional = info.positional[1 if bound else 0 :]
    shown = next((i for i, value in enumerate(call.args) if isinstance(value, ast.Starred)), len(call.args))
    found = list(zip(positional, call.args[:shown], strict=False))
    known = _parameter_names(info)
    found += [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg in known]
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    if sum(is_name(value, layer) for value in values) != sum(is_name(value, layer) for _, value in found):
        raise Escaped
    return found
