"""What nodes of the syntax tree bind, and what expressions show memory that is there already."""

from __future__ import annotations

import ast

from rebindlint.index.modules import descend

__all__ = ["binds", "callee_name", "is_some", "own_nodes", "shows"]


def is_some(value: ast.expr | None) -> bool:
    """Whether a value is given that is not None as it is written."""
    return value is not None and not (isinstance(value, ast.Constant) and value.value is None)


_RESHOWS = frozenset(
    {
        "contiguous",
        "data",
        "detach",
        "mT",
        "permute",
        "reshape",
        "squeeze",
        "t",
        "T",
        "to",
        "transpose",
        "unsqueeze",
        "view",
    }
)


def shows(value: ast.expr | None, names: set[str]) -> bool:
    """Whether an expression is one of the variables, or what may be a view of it."""
    while True:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            value = value.func
        elif isinstance(value, ast.Attribute) and value.attr in _RESHOWS:
            value = value.value
        else:
            return isinstance(value, ast.Name) and value.id in names


def binds(node: ast.AST) -> bool:
    """Whether this very node binds an attribute or slot, or is a call that by its name does or is given the whole layer."""
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return isinstance(node.ctx, (ast.Store, ast.Del))
    return isinstance(node, ast.Call) and (callee_name(node) in _BINDING_CALLS or _layer_argument(node))


_BINDING_CALLS = frozenset(
    {
        "setattr",
        "delattr",
        "register_parameter",
        "register_buffer",
        "replace_parameter",
        "copy_or_rebind_param",
        "set_",
        "copy_",
    }
)


def callee_name(node: ast.Call) -> str:
    return (
        node.func.attr
        if isinstance(node.func, ast.Attribute)
        else node.func.id
        if isinstance(node.func, ast.Name)
        else ""
    )


def _layer_argument(node: ast.Call) -> bool:
    """The whole layer is handed on, so the callee may bind its attributes."""
    return any(
        isinstance(a, ast.Name) and a.id in ("layer", "module", "self")
        for a in [*node.args, *(k.value for k in node.keywords)]
    )


def own_nodes(node: ast.AST) -> list[ast.AST]:
    """All nodes below ``node`` without those of nested functions and classes."""
    return descend(
        *ast.iter_child_nodes(node), skipped=(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
    )
