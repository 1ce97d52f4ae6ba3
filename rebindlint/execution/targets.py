"""Binding of targets: names, attributes, slots, and sequences of these."""

from __future__ import annotations

import ast

from rebindlint.execution import attribute_writes, attributes, calls, expressions, promotion, tensors
from rebindlint.execution.containers import is_key_by_shape, put_by_shape
from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.items import key_of
from rebindlint.execution.values import (
    Const,
    DictValue,
    Env,
    Function,
    ListValue,
    Obj,
    Tensor,
    Unknown,
    Value,
    label_of,
)
from rebindlint.index.classes import FunctionInfo

__all__ = ["bind", "bind_slot"]


def bind(m: Interpreter, target: ast.expr, value: Value, env: Env) -> None:
    """``target = value`` for any kind of target."""
    if isinstance(target, ast.Name):
        function = env.function
        if function is None or not (function.globals or function.nonlocals):
            env.variables[target.id] = value
        else:
            _bind_declared(m, target.id, value, env, function)
    elif isinstance(target, ast.Attribute):
        attribute_writes.write(m, expressions.evaluate(m, target.value, env), target.attr, value)
    elif isinstance(target, ast.Subscript):
        index = None if isinstance(target.slice, ast.Slice) else expressions.evaluate(m, target.slice, env)
        bind_slot(m, expressions.evaluate(m, target.value, env), index, value)
    elif isinstance(target, ast.Starred):
        bind(m, target.value, value, env)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for inner, item in zip(target.elts, _unpack(m, value, target), strict=False):
            bind(m, inner, item, env)


def _bind_declared(m: Interpreter, name: str, value: Value, env: Env, function: FunctionInfo) -> None:
    """In a function that declares names ``global`` or ``nonlocal``."""
    if name in function.globals:
        old = m.globals.get((env.module.name, name))
        m.globals[(env.module.name, name)] = value
        attribute_writes.note_slot(m, env.module, name, value, old)
        return
    if name in function.nonlocals:
        outer = env.parent
        while outer is not None and name not in outer.variables:
            outer = outer.parent
        if outer is not None:
            outer.variables[name] = value
            return
    env.variables[name] = value


def _unpack(m: Interpreter, value: Value, target: ast.Tuple | ast.List) -> list[Value]:
    count = len(target.elts)
    if isinstance(value, ListValue) and len(value.items) >= count:
        return value.items
    tensor = promotion.maybe_tensor(value)
    if tensor is not None:
        if tensor.storage.born == m.run and not tensor.path and not tensor.is_parameter and not tensor.home:
            return [m.fresh(f"unpack{i}", [tensor], certain=tensor.certain) for i in range(count)]
        return [tensors.element(m, tensor, Const(i)) for i in range(count)]
    label = label_of(value)
    return [Unknown(f"{label}[{i}]") for i in range(count)]


def bind_slot(m: Interpreter, holder: Value, index: Value | None, value: Value) -> None:
    """``holder[index] = value``: a write into a tensor, a slot of a container, or a registered tensor of a module."""
    tensor = promotion.maybe_tensor(holder)
    if tensor is None and isinstance(holder, Unknown) and index is None:
        tensor = promotion.as_tensor(m, holder)
    if tensor is not None:
        part = (
            tensors.element(m, tensor, index) if isinstance(index, Value) and not isinstance(index, Tensor) else tensor
        )
        m.write(part, m.term(value), m.epochs([value]), m.sources([value]), whole=False)
        return
    if isinstance(holder, DictValue):
        key = key_of(index)
        old = holder.items.get(key)
        if is_key_by_shape(key):
            put_by_shape(value)
        holder.items[key] = value
        attribute_writes.note_slot(m, holder, key, value, old)
    elif isinstance(holder, ListValue) and isinstance(index, Const) and isinstance(index.value, int):
        if -len(holder.items) <= index.value < len(holder.items):
            old = holder.items[index.value]
            holder.items[index.value] = value
            attribute_writes.note_slot(m, holder, index.value % max(len(holder.items), 1), value, old)
    elif isinstance(holder, (Unknown, Obj)) and (obj := promotion.as_object(m, holder)) is not None and obj.cls is None:
        name = f"[{key_of(index)!r}]"
        old = obj.attributes.get(name)
        obj.attributes[name] = value
        attribute_writes.note_slot(m, obj, name, value, old)
    elif isinstance(holder, Obj):
        method = attributes.read(m, holder, "__setitem__", m.frame.statement) if holder.cls is not None else None
        if isinstance(method, Function):
            calls.enter(m, method, [index or Unknown("slice"), value], {}, m.frame.statement)
