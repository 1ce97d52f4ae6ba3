"""Attributes that a constructor leaves None, and the code that makes or keeps such objects sets."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.values import Obj
from rebindlint.index.classes import ClassInfo
from rebindlint.index.hooks import LAYER_NAMES
from rebindlint.index.modules import Module, descend

__all__ = ["is_set_by_makers"]


def is_set_by_makers(m: Interpreter, obj: Obj, name: str) -> bool:
    """Whether code in a file of the object's class sets the attribute on what may be such an object, and not just to a constant."""
    cls = obj.cls
    if cls is None:
        return False
    key = ("set by makers", id(cls), name)
    known: bool | None = m.index.pure.get(key)
    if known is None:
        modules = {id(base.module): base.module for base in m.index.mro(cls) if f".{name} = " in base.module.text}
        known = m.index.pure[key] = any(_sets(m, module, cls, name) for module in modules.values())
    return known


def _sets(m: Interpreter, module: Module, cls: ClassInfo, name: str) -> bool:
    functions = (node for node in descend(module.tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return any(
        _may_be(m, module, function, variable, cls) for function in functions for variable in _set_on(function, name)
    )


def _set_on(function: ast.AST, name: str) -> Iterator[str]:
    """The variables of the function that get the attribute."""
    for node in descend(function):
        target = node.targets[0] if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Constant) else None
        if (
            isinstance(target, ast.Attribute)
            and target.attr == name
            and isinstance(target.value, ast.Name)
            and target.value.id not in ("self", "cls", *LAYER_NAMES)
        ):
            yield target.value.id


def _may_be(m: Interpreter, module: Module, function: ast.AST, variable: str, cls: ClassInfo) -> bool:
    """Unless all that the variable is assigned are new objects of other classes."""
    assigned = [
        node.value
        for node in descend(function)
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == variable for target in node.targets)
    ]
    made = [m.index.resolve_expression(module, v.func) if isinstance(v, ast.Call) else None for v in assigned]
    return not made or any(
        not isinstance(of, ClassInfo) or of in m.index.mro(cls) or cls in m.index.mro(of) for of in made
    )
