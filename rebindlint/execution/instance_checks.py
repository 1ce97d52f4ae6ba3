"""``isinstance``: decided by what is known of a value, else asked of the oracle and remembered by the value."""

from __future__ import annotations

import ast

from rebindlint.execution import promotion
from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.values import (
    ClassValue,
    Const,
    DictValue,
    External,
    ListValue,
    Obj,
    Unknown,
    Value,
    label_of,
)

__all__ = ["is_instance"]


def is_instance(m: Interpreter, value: Value, kind: Value, node: ast.AST) -> bool:
    """``isinstance(value, kind)``; a value of unknown kind is of that kind from now on if the oracle says so."""
    if isinstance(kind, ListValue):
        return any(is_instance(m, value, item, node) for item in kind.items)
    label = label_of(kind)
    last = label.rpartition(".")[2]
    tensor = promotion.maybe_tensor(value)
    if tensor is not None and not tensor.certain and isinstance(kind, ClassValue):
        return bool(m.ask("?", node))  # a guess only, and this may be the better one
    if (
        tensor is None
        and isinstance(value, Unknown)
        and (
            last in ("Tensor", "Parameter") or (isinstance(kind, ClassValue) and m.index.is_parameter_class(kind.info))
        )
        and m.ask(f"isinstance({value.label},{last})", node, default=1)
    ):
        tensor = promotion.as_tensor(m, value)
    if tensor is not None:
        if last == "Tensor":
            return True
        if last in ("Parameter", "Buffer") and isinstance(kind, External):
            return tensor.is_parameter
        if isinstance(kind, ClassValue) and m.index.is_parameter_class(kind.info):
            return tensor.is_parameter and bool(
                m.ask(f"isinstance({tensor.home},{last})" if tensor.home else "?", node, default=1)
            )
        return False
    if isinstance(value, Const):
        kinds = {"int": int, "float": float, "str": str, "bool": bool}
        return last in kinds and isinstance(value.value, kinds[last])
    if isinstance(value, ListValue):
        return last in ("list", "tuple", "Sequence", "Iterable")
    if isinstance(value, DictValue):
        return last in ("dict", "Mapping")
    if isinstance(value, Obj) and isinstance(kind, ClassValue):
        return _object_is(m, value, kind, node)
    answer = bool(m.ask(f"isinstance({label_of(value)},{label})", node))
    if last == "Parameter" and not answer and isinstance(value, Unknown) and value.home is not None and m.run == 1:
        value.home[0].plain.add(value.home[1])
    if answer and isinstance(value, Unknown) and isinstance(kind, ClassValue):
        obj = promotion.as_object(m, value)
        if obj is not None and obj.cls is None:
            obj.cls, obj.is_module = kind.info, m.index.is_module(kind.info)
    return answer


def _object_is(m: Interpreter, value: Obj, kind: ClassValue, node: ast.AST) -> bool:
    if value.cls is not None and m.index.is_subclass(value.cls, kind.info):
        return True
    if value.cls is not None and value.exact:
        return False
    if value.cls is not None and not m.index.is_subclass(kind.info, value.cls) and not _is_open(m, value):
        return False
    answer = bool(m.ask(f"isinstance({value.label},{kind.info.name})", node))
    if answer and value.cls is None:
        value.cls = kind.info
        value.is_module = value.is_module or m.index.is_module(kind.info)
    return answer


def _is_open(m: Interpreter, value: Obj) -> bool:
    """Mixins: a subclass of the bound may also be of the asked kind."""
    return value.cls is not None and not value.exact and value.is_module
