"""Engines that refuse to load weights again while some module has a certain attribute: what was derived there could not be refreshed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rebindlint.index.modules import FunctionNode, descend

if TYPE_CHECKING:
    from rebindlint.index.tree import Index

__all__ = ["refusing_attributes"]

_UPDATES = re.compile(rb"def (?:\w+_)?(?:update|reload)_weights")


def refusing_attributes(index: Index) -> frozenset[str]:
    """Names of attributes that the code which loads weights again asks all modules for, and gives up where one is set.

    Such code is a function that goes through ``model.modules()``, asks ``getattr(module, "name", None) is not None``, and then raises or gives
    back a text.
    """
    names: set[str] = set()
    for name, source in index.sources.items():
        raw = index.bytes.get(source.shown, b"")
        if b".modules()" not in raw or b"getattr(" not in raw or _UPDATES.search(raw) is None:
            continue
        module = index.module(name)
        for node in descend(module.tree) if module is not None else ():
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                names.update(_refused_in(node))
    return frozenset(names)


def _refused_in(function: FunctionNode) -> Iterator[str]:
    if isinstance(function, ast.Lambda):
        return
    modules = {name for node in descend(function) for name in _through_modules(node)}
    gives_text = function.returns is not None and "str" in ast.unparse(function.returns)
    known = {
        node.targets[0].id: name
        for node in descend(function)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        if (name := _asked_for(node.value, modules))
    }
    for node in descend(function) if modules else ():
        if isinstance(node, ast.If) and _refuses(node.body[-1], gives_text):
            for found in _found_set(node.test):
                name = known.get(found.id, "") if isinstance(found, ast.Name) else _asked_for(found, modules)
                if name:
                    yield name


def _through_modules(node: ast.AST) -> Iterator[str]:
    """The variable of a loop or a comprehension over all modules of a model."""
    if isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.target, ast.Name):
        call = node.iter
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "modules":
            yield node.target.id


def _refuses(last: ast.stmt, gives_text: bool) -> bool:
    if isinstance(last, ast.Raise):
        return True
    return isinstance(last, ast.Return) and gives_text and not _is_nothing(last.value)


def _is_nothing(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def _found_set(test: ast.expr) -> Iterator[ast.expr]:
    """What a condition found not to be None, or to be true: one of these at least, or all of them."""
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _found_set(value)
    elif isinstance(test, ast.Compare):
        if len(test.ops) == 1 and isinstance(test.ops[0], ast.IsNot) and _is_nothing(test.comparators[0]):
            yield test.left
    elif isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "any":
        inner = test.args[0] if test.args else None
        if isinstance(inner, (ast.GeneratorExp, ast.ListComp)):
            yield from _found_set(inner.elt)
    else:
        yield test


def _asked_for(call: ast.expr, modules: set[str]) -> str:
    """``name`` of ``getattr(module, "name", None)``."""
    if (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "getattr"
        and len(call.args) == 3
        and _is_nothing(call.args[2])
        and isinstance(call.args[0], ast.Name)
        and call.args[0].id in modules
        and isinstance(call.args[1], ast.Constant)
    ):
        return str(call.args[1].value)
    return ""
