"""Items of symbolic values: under an index or a key, and one after another."""

from __future__ import annotations

import ast

from rebindlint.execution import promotion, tensors
from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.sizes import shape_called
from rebindlint.execution.values import (
    ClassValue,
    Const,
    DictValue,
    Function,
    ListValue,
    Obj,
    Unknown,
    Value,
    is_stable,
    label_of,
)
from rebindlint.index.modules import text_of

__all__ = ["items_of", "key_of", "subscript"]

_MAX_ITEMS = 16


def subscript(m: Interpreter, holder: Value, index: Value | None, node: ast.Subscript) -> Value:
    """``holder[index]``; no index stands for a slice."""
    tensor = promotion.maybe_tensor(holder)
    if tensor is not None:
        return tensors.element(m, tensor, index if index is not None else Unknown(text_of(node.slice)))
    if isinstance(holder, ListValue):
        if (
            isinstance(index, Const)
            and isinstance(index.value, int)
            and -len(holder.items) <= index.value < len(holder.items)
        ):
            return holder.items[index.value]
        if isinstance(node.slice, ast.Slice):
            return _slice(holder, node.slice)
        return holder.items[0] if holder.items else Unknown("item")
    if isinstance(holder, DictValue):
        key = key_of(index)
        if key in holder.items:
            return holder.items[key]
        if holder.label:
            value = Unknown(f"{holder.label}[{label_of(index) if index is not None else ':'}]")
            if not holder.closed or key is not None:
                holder.items.setdefault(key, value)
            return value
        return Unknown("item")
    if (
        isinstance(holder, Const)
        and isinstance(holder.value, (str, tuple))
        and isinstance(index, Const)
        and isinstance(index.value, int)
    ):
        try:
            return Const(holder.value[index.value])
        except IndexError:
            return Unknown("item")
    if isinstance(holder, (Function, ClassValue)):
        return holder
    if isinstance(holder, Unknown) and isinstance(index, Const) and isinstance(index.value, int):
        shape = shape_called(holder.label)
        sizes = m.sizes.get(shape) if shape is not None else None
        if sizes is not None and -len(sizes) <= index.value < len(sizes):
            return sizes[index.value]
    label = label_of(index) if index is not None else text_of(node.slice)
    if isinstance(holder, Obj) and holder.cls is None and holder.home is not None:
        holder = Unknown(holder.label, holder.home)
    if isinstance(holder, Unknown) and holder.home is not None and is_stable(label) and index is not None:
        return promotion.element_of(m, holder, label, index)
    return Unknown(f"{label_of(holder)}[{label}]")


def _slice(holder: ListValue, node: ast.Slice) -> ListValue:
    bounds = [
        b.value if isinstance(b, ast.Constant) and isinstance(b.value, int) else None
        for b in (node.lower, node.upper, node.step)
    ]
    known = all(b is None or isinstance(b, ast.Constant) for b in (node.lower, node.upper, node.step))
    return ListValue(
        holder.items[bounds[0] : bounds[1] : bounds[2]] if known else list(holder.items), holder.closed and known
    )


def key_of(index: Value | None) -> object:
    """What a dictionary is keyed by: constants by value, everything else by label."""
    if isinstance(index, Const):
        try:
            hash(index.value)
        except TypeError:
            return None
        return index.value
    if isinstance(index, ListValue):
        return tuple(key_of(item) for item in index.items)
    return f"{{{label_of(index)}}}" if index is not None else None


def items_of(m: Interpreter, value: Value, node: ast.AST) -> tuple[list[Value], bool]:
    """The items that a loop over ``value`` visits, and whether these are all; an unknown sequence is visited once."""
    if isinstance(value, ListValue):
        return value.items[:_MAX_ITEMS], value.closed
    if isinstance(value, DictValue):
        keys: list[Value] = [Const(k) for k in value.items if k is not None]
        return keys[:_MAX_ITEMS] or ([] if value.closed else [Unknown(f"{value.label}.key")]), value.closed
    tensor = promotion.maybe_tensor(value)
    if tensor is not None:
        return [tensors.element(m, tensor, Unknown("item"))], False
    if isinstance(value, Const) and isinstance(value.value, (str, tuple)):
        letters: list[Value] = [Const(c) for c in value.value]
        return letters[:_MAX_ITEMS], True
    if isinstance(value, Const) and value.value is None:
        return [], True
    if isinstance(value, Obj) and value.cls is None and value.home is not None:
        value = Unknown(value.label, value.home)
    if isinstance(value, Unknown) and value.home is not None:
        return [promotion.element_of(m, value, "*")], False
    return [Unknown(f"{label_of(value)}[*]")], False
