"""The values of module-level and class-level assignments: literals, and plain calls of known functions."""

from __future__ import annotations

import ast

from rebindlint.execution.annotations import annotated
from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.values import (
    NOTHING,
    Const,
    DictValue,
    External,
    ListValue,
    Obj,
    Partial,
    Unknown,
    Value,
)
from rebindlint.index.classes import ClassInfo
from rebindlint.index.modules import Assigned, Module

__all__ = ["class_value", "module_value"]


def module_value(m: Interpreter, module: Module, assigned: Assigned, name: str) -> Value:
    """The value of a module-level assignment; only literals and plain calls of known functions are evaluated."""
    label = f"{module.name}.{name}"
    if isinstance(assigned.value, ast.Constant) and name in module.rebound:
        # some function binds it before any hook runs
        return (
            annotated(m, assigned.annotation, module, label, None, optional=False)
            if assigned.annotation is not None
            else Unknown(label)
        )
    return _literal(m, assigned.value, module, label)


def class_value(m: Interpreter, cls: ClassInfo, name: str, node: ast.AST) -> Value:
    value = _literal(m, cls.attributes[name], cls.module, f"{cls.name}.{name}")
    if isinstance(value, Unknown) and name in cls.annotations:
        return annotated(m, cls.annotations[name], cls.module, value.label, node)
    return value


def _literal(m: Interpreter, node: ast.expr, module: Module, label: str) -> Value:
    if isinstance(node, ast.Constant):
        return Const(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        number = node.operand.value
        return Const(-number) if isinstance(number, (int, float)) else Unknown(label)
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)) and len(node.elts) <= 32:
        return ListValue([_literal(m, item, module, f"{label}[{i}]") for i, item in enumerate(node.elts)])
    if isinstance(node, ast.Dict) and len(node.keys) <= 64:
        items: dict[object, Value] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant):
                items[key.value] = _literal(m, item, module, f"{label}[{key.value!r}]")
        return DictValue(items, label, closed=len(items) == len(node.keys))
    if isinstance(node, (ast.Name, ast.Attribute)):
        from rebindlint.execution.attributes import resolved_value

        found = m.index.resolve_expression(module, node)
        if isinstance(node, ast.Attribute):
            home = m.index.resolve_expression(module, node.value)
            if isinstance(home, ClassInfo) and m.index.is_enumeration(home):
                return Const(("enum", home.name, node.attr))
        if found is not None and not isinstance(found, tuple):
            return resolved_value(m, found, module, label)
    if isinstance(node, ast.Call):
        found = m.index.resolve_expression(module, node.func)
        if isinstance(found, ClassInfo) and not m.index.is_enumeration(found) and not m.index.is_parameter_class(found):
            return Obj(label, found, is_module=m.index.is_module(found))
        default = next((k.value for k in node.keywords if k.arg == "default"), None)
        if isinstance(found, str) and str(found).endswith("ContextVar") and isinstance(default, ast.Constant):
            # no reload runs inside the context that sets it
            variable = Obj(label)
            variable.attributes["get"] = Partial(External("typing.cast"), [NOTHING, Const(default.value)], {})
            return variable
        if (
            isinstance(node.func, ast.Name)
            and node.func.id in ("dict", "WeakKeyDictionary", "OrderedDict", "defaultdict")
            and not node.args
        ):
            return DictValue({}, label)
    return Unknown(label)
