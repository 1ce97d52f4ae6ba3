"""Dtypes as labels: which one an argument names, and whether two are the same."""

from __future__ import annotations

import ast

from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.values import External, Unknown, Value

__all__ = ["dtype_label", "is_concrete", "same_dtype"]


def dtype_label(value: Value) -> str:
    """The dtype that an argument names, ``""`` when it is none."""
    if isinstance(value, External) and value.label.startswith("torch."):
        last = value.label[6:]
        return (
            ""
            if "." in last or last in ("device", "strided", "contiguous_format", "preserve_format", "channels_last")
            else value.label
        )
    if isinstance(value, Unknown) and ("dtype" in value.label or value.label.startswith("torch.")):
        return value.label
    return ""


def same_dtype(m: Interpreter, left: str, right: str, node: ast.AST) -> bool:
    """Whether two dtypes are equal: known, decided, or asked once for both runs."""
    if left == right:
        return True
    if is_concrete(left) and is_concrete(right):
        return False
    if is_concrete(left):
        left, right = right, left
    return m.oracle.equal(left, right, m.place(node), constant=is_concrete(right))


def is_concrete(label: str) -> bool:
    return label.startswith("torch.") and "(" not in label
