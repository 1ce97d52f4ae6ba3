"""Arithmetic of symbolic values: on constants computed, on tensors newly allocated memory."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from rebindlint.execution import layout, promotion
from rebindlint.execution.interpreter import Interpreter, Raised
from rebindlint.execution.values import Const, DictValue, ListValue, Scalar, Unknown, Value, label_of

__all__ = ["binary", "unary"]

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}


def unary(m: Interpreter, op: ast.unaryop, value: Value) -> Value:
    """``-value``, ``+value`` or ``~value``."""
    tensor = promotion.operand(m, value)
    if tensor is not None:
        return m.fresh(type(op).__name__, [tensor], dtype=tensor.dtype, shape=tensor.shape)
    if isinstance(value, Const) and isinstance(value.value, (int, float)):
        return Const(
            -value.value if isinstance(op, ast.USub) else value.value if isinstance(op, ast.UAdd) else ~int(value.value)
        )
    return Unknown(f"{type(op).__name__}({label_of(value)})")


def binary(m: Interpreter, op: ast.operator, left: Value, right: Value) -> Value:
    """``left op right``, also for sequences and dictionaries that are put together."""
    name = type(op).__name__
    first, second = promotion.operand(m, left), promotion.operand(m, right)
    if first is not None or second is not None:
        tensor = first or second
        assert tensor is not None
        both = first is not None and second is not None
        return m.fresh(name, [left, right], dtype=tensor.dtype, shape=0 if both else tensor.shape)
    if isinstance(left, Const) and isinstance(right, Const) and not isinstance(left.value, tuple):
        try:
            return Const(_OPERATORS[type(op)](left.value, right.value)) if type(op) is not ast.Pow else Unknown("pow")
        except (TypeError, ValueError, ArithmeticError, KeyError, MemoryError):
            if left.value is None or right.value is None:
                raise Raised("None takes part in no arithmetic") from None
            return Unknown(name)
    if isinstance(left, ListValue) and isinstance(right, ListValue) and isinstance(op, ast.Add):
        return ListValue([*left.items, *right.items], left.closed and right.closed)
    if isinstance(left, DictValue) and isinstance(right, DictValue):
        return DictValue({**left.items, **right.items}, closed=left.closed and right.closed)
    if isinstance(left, Scalar) or isinstance(right, Scalar):
        label = f"({label_of(left)} {name} {label_of(right)})"
        parts = [left, right]
        return Scalar(label, m.epochs(parts), m.terms.of(name, m.term(left), m.term(right)), m.sources(parts))
    if isinstance(op, (ast.Add, ast.Sub)) and (offset := layout.kept_offset(left, right)) is not None:
        return offset
    return Unknown(f"({label_of(left)} {name} {label_of(right)})", made_from=(name, [left, right]))
