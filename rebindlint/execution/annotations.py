"""What an annotation says of a value that nothing else is known of."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.values import (
    NOTHING,
    Obj,
    Unknown,
    Value,
)
from rebindlint.index.classes import ClassInfo, class_bound
from rebindlint.index.modules import Module

if TYPE_CHECKING:
    from rebindlint.index.tree import Resolved

__all__ = ["annotated"]

_TENSORS = ("Tensor", "Parameter", "Buffer", "FloatTensor", "LongTensor")


def annotated(
    m: Interpreter, annotation: ast.expr, module: Module, label: str, node: ast.AST | None, *, optional: bool = True
) -> Value:
    """A value of an annotated type: a tensor, an object bounded by its class, None where allowed, else unknown."""
    options: list[ast.expr] | None = m.index.pure.get(("union", id(annotation)))
    if options is None:
        options = m.index.pure[("union", id(annotation))] = _union(annotation)
        m.index.pure[("annotation", id(annotation))] = annotation  # what is looked up by id must stay alive
    kinds = [o for o in options if not _is_none(o)]
    if len(kinds) < len(options) and optional and not m.ask(f"{label} is not None", node or annotation, default=1):
        return NOTHING
    if len(kinds) != 1:
        return Unknown(label)
    kind = kinds[0]
    bound = class_bound(kind)
    if bound is not None and isinstance(info := m.index.resolve_expression(module, bound), ClassInfo):
        m.bounds[label] = info  # which class it is, matters once it is instantiated
        return Unknown(label)
    name = kind.attr if isinstance(kind, ast.Attribute) else kind.id if isinstance(kind, ast.Name) else ""
    if name in _TENSORS:
        return m.weight(label, is_parameter=name == "Parameter")
    if name in ("str", "int", "float", "bool", "Any", "dtype", "device"):
        return Unknown(label)
    found: Resolved | None = m.index.resolve_expression(module, kind) if name else None
    if isinstance(found, ClassInfo):
        if m.index.is_parameter_class(found):
            return m.weight(label, is_parameter=True)
        if m.index.is_enumeration(found):
            return Unknown(label)
        return Obj(label, found, is_module=m.index.is_module(found), exact=False)
    if isinstance(found, str) and str(found).endswith("nn.Module"):
        return Obj(label, is_module=True, exact=False)
    return Unknown(label)


def _union(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union(node.left) + _union(node.right)
    if isinstance(node, ast.Subscript):
        head = (
            node.value.attr
            if isinstance(node.value, ast.Attribute)
            else node.value.id
            if isinstance(node.value, ast.Name)
            else ""
        )
        if head == "Optional":
            return [*_union(node.slice), ast.Constant(None)]
        if head == "Union" and isinstance(node.slice, ast.Tuple):
            return [option for item in node.slice.elts for option in _union(item)]
        if head in ("ClassVar", "Final", "Annotated"):
            return _union(node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return _union(ast.parse(node.value, mode="eval").body)
        except SyntaxError:
            return [node]
    return [node]


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
