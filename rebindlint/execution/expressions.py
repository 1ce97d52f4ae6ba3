"""Evaluation of expressions."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from rebindlint.execution import attribute_writes, attributes, calls, conditions, layout, promotion, tensors
from rebindlint.execution.containers import is_key_by_shape, put_by_shape
from rebindlint.execution.interpreter import MAX_STEPS, Interpreter, OutOfBudget, Raised
from rebindlint.execution.values import (
    NOTHING,
    ClassValue,
    Const,
    DictValue,
    Env,
    External,
    Function,
    ListValue,
    Obj,
    Scalar,
    Tensor,
    Unknown,
    Value,
    is_stable,
    label_of,
)
from rebindlint.index.classes import FunctionInfo
from rebindlint.index.modules import text_of

__all__ = ["bind", "evaluate", "generated", "items_of", "key_of"]

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
_MAX_ITEMS = 16
_SHAPE = re.compile(r"shape\d+")


def evaluate(m: Interpreter, node: ast.expr, env: Env) -> Value:
    m.steps += 1
    if m.steps > MAX_STEPS:
        raise OutOfBudget
    kind = type(node)
    if kind is ast.Name:  # half of all expressions
        found = env.variables.get(node.id)  # type: ignore[attr-defined]
        return found if found is not None else _name(m, node, env)  # type: ignore[arg-type]
    handler = _HANDLERS.get(kind)
    if handler is None:
        return Unknown(kind.__name__)
    return handler(m, node, env)


def _constant(m: Interpreter, node: ast.Constant, env: Env) -> Value:
    known: Value | None = node.__dict__.get("symbolic")
    if known is None:
        known = node.__dict__["symbolic"] = NOTHING if node.value is None else Const(node.value)
    return known


def _name(m: Interpreter, node: ast.Name, env: Env) -> Value:
    found = env.find(node.id)
    if found is not None:
        return found
    key = (env.module.name, node.id)
    known = m.globals.get(key) or m.index.lasting.get(key)
    if known is not None:
        return known
    resolved = m.index.resolve(env.module, node.id)
    if resolved is None and node.id not in calls.BUILTINS:
        return Unknown(node.id)
    value = External(node.id) if resolved is None else attributes.resolved_value(m, resolved, env.module, node.id)
    if not isinstance(resolved, tuple):  # functions, classes, modules and what is outside the tree
        m.index.lasting[key] = value
    return value


def _attribute(m: Interpreter, node: ast.Attribute, env: Env) -> Value:
    return attributes.read(m, evaluate(m, node.value, env), node.attr, node)


def _subscript(m: Interpreter, node: ast.Subscript, env: Env) -> Value:
    holder = evaluate(m, node.value, env)
    index = None if isinstance(node.slice, ast.Slice) else evaluate(m, node.slice, env)
    return subscript(m, holder, index, node)


def subscript(m: Interpreter, holder: Value, index: Value | None, node: ast.Subscript) -> Value:
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
        sizes = m.sizes.get(int(holder.label[5:])) if _SHAPE.fullmatch(holder.label) else None
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


def _sequence(m: Interpreter, node: ast.Tuple | ast.List | ast.Set, env: Env) -> Value:
    items: list[Value] = []
    closed = True
    for item in node.elts:
        if isinstance(item, ast.Starred):
            value = evaluate(m, item.value, env)
            if isinstance(value, ListValue):
                items.extend(value.items)
                closed = closed and value.closed
            else:
                closed = False
        else:
            items.append(evaluate(m, item, env))
    return ListValue(items, closed, _decided_by(node.elts, env) if closed and env.hangs_on else ())


def _decided_by(items: list[ast.expr], env: Env) -> Sequence[tuple[Hashable, ...]]:
    found = [env.hangs_on.get(item.id, ()) if isinstance(item, ast.Name) else () for item in items]
    return found if any(found) and not any(isinstance(item, ast.Starred) for item in items) else ()


def _dict(m: Interpreter, node: ast.Dict, env: Env) -> Value:
    found = DictValue()
    for key, item in zip(node.keys, node.values, strict=True):
        value = evaluate(m, item, env)
        if key is None:
            if isinstance(value, DictValue):
                found.items.update(value.items)
            else:
                found.closed = False
            continue
        found.items[key_of(evaluate(m, key, env))] = value
    return found


def _lambda(m: Interpreter, node: ast.Lambda, env: Env) -> Value:
    return Function(m.index.function_info(env.module, node), env)


def _conditional(m: Interpreter, node: ast.IfExp, env: Env) -> Value:
    taken = m.decided(node.test, conditions.truth(m, node.test, env))
    return evaluate(m, node.body if taken else node.orelse, env)


def _walrus(m: Interpreter, node: ast.NamedExpr, env: Env) -> Value:
    value = evaluate(m, node.value, env)
    bind(m, node.target, value, env)
    return value


def _boolean(m: Interpreter, node: ast.BoolOp, env: Env) -> Value:
    value: Value = NOTHING
    for operand in node.values:
        value = evaluate(m, operand, env)
        if operand is node.values[-1]:
            return value
        if conditions.is_true(m, value, operand) != isinstance(node.op, ast.And):
            return value
    return value


def _unary(m: Interpreter, node: ast.UnaryOp, env: Env) -> Value:
    if isinstance(node.op, ast.Not):
        return Const(not conditions.truth(m, node.operand, env))
    value = evaluate(m, node.operand, env)
    tensor = promotion.operand(m, value)
    if tensor is not None:
        return m.fresh(type(node.op).__name__, [tensor], dtype=tensor.dtype, shape=tensor.shape)
    if isinstance(value, Const) and isinstance(value.value, (int, float)):
        return Const(
            -value.value
            if isinstance(node.op, ast.USub)
            else value.value
            if isinstance(node.op, ast.UAdd)
            else ~int(value.value)
        )
    return Unknown(f"{type(node.op).__name__}({label_of(value)})")


def _binary(m: Interpreter, node: ast.BinOp, env: Env) -> Value:
    return binary(m, node.op, evaluate(m, node.left, env), evaluate(m, node.right, env))


def binary(m: Interpreter, op: ast.operator, left: Value, right: Value) -> Value:
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


def _format(m: Interpreter, node: ast.JoinedStr, env: Env) -> Value:
    text = ""
    for part in node.values:
        if isinstance(part, ast.Constant):
            text += str(part.value)
            continue
        assert isinstance(part, ast.FormattedValue)
        value = evaluate(m, part.value, env)
        text += (
            str(value.value)
            if isinstance(value, Const) and isinstance(value.value, (str, int))
            else f"{{{label_of(value)}}}"
        )
    return Const(text)


def _compare(m: Interpreter, node: ast.Compare, env: Env) -> Value:
    return (
        Const(conditions.truth(m, node, env))
        if not _is_elementwise(m, node, env)
        else m.fresh("compare", [], dtype="torch.bool")
    )


def _is_elementwise(m: Interpreter, node: ast.Compare, env: Env) -> bool:
    """Only plain names are looked at: evaluating the operands here would evaluate them twice."""
    return (
        isinstance(node.left, ast.Name)
        and isinstance(env.find(node.left.id), Tensor)
        and not isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn))
    )


def _comprehension(m: Interpreter, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, env: Env) -> Value:
    items: list[Value] = []
    closed = _generate(
        m, node.generators, Env(env.module, env.function, env), lambda e: items.append(evaluate(m, node.elt, e))
    )
    if isinstance(node, ast.SetComp) and len(items) > 1 and not all(isinstance(item, Const) for item in items):
        closed = False  # some of them may be the same
    return ListValue(items, closed)


class _Decided(Exception):
    """No further item matters."""


def generated(m: Interpreter, node: ast.GeneratorExp, env: Env, deciding: bool) -> ListValue:
    """The items that ``any`` (``deciding`` true) or ``all`` look at: none behind the one that decides, which is then the only one."""
    items: list[Value] = []

    def look(inner: Env) -> None:
        items.append(evaluate(m, node.elt, inner))
        if isinstance(items[-1], Const) and bool(items[-1].value) == deciding:
            raise _Decided

    try:
        return ListValue(items, _generate(m, node.generators, Env(env.module, env.function, env), look))
    except _Decided:
        return ListValue(items[-1:])


def _dict_comprehension(m: Interpreter, node: ast.DictComp, env: Env) -> Value:
    found = DictValue()

    def add(inner: Env) -> None:
        found.items[key_of(evaluate(m, node.key, inner))] = evaluate(m, node.value, inner)

    found.closed = _generate(m, node.generators, Env(env.module, env.function, env), add)
    return found


def _generate(m: Interpreter, generators: list[ast.comprehension], env: Env, emit: Callable[[Env], None]) -> bool:
    if not generators:
        emit(env)
        return True
    first, rest = generators[0], generators[1:]
    items, closed = items_of(m, evaluate(m, first.iter, env), first.iter)
    for item in items:
        bind(m, first.target, item, env)
        if all(conditions.truth(m, test, env) for test in first.ifs):
            closed = _generate(m, rest, env, emit) and closed
    return closed


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


def _await(m: Interpreter, node: ast.Await | ast.Starred, env: Env) -> Value:
    return evaluate(m, node.value, env)


def _yield(m: Interpreter, node: ast.Yield, env: Env) -> Value:
    value = evaluate(m, node.value, env) if node.value is not None else NOTHING
    collected = env.variables.setdefault("<yielded>", ListValue([], closed=False))
    if isinstance(collected, ListValue):
        collected.items.append(value)
    return NOTHING


def _yield_from(m: Interpreter, node: ast.YieldFrom, env: Env) -> Value:
    collected = env.variables.setdefault("<yielded>", ListValue([], closed=False))
    if isinstance(collected, ListValue):
        collected.items.extend(items_of(m, evaluate(m, node.value, env), node)[0])
    return NOTHING


def _call(m: Interpreter, node: ast.Call, env: Env) -> Value:
    return calls.evaluate_call(m, node, env)


# ---- binding of targets


def bind(m: Interpreter, target: ast.expr, value: Value, env: Env) -> None:
    """``target = value`` for any kind of target."""
    if isinstance(target, ast.Name):
        function = env.function
        if function is None or not (function.globals or function.nonlocals):
            env.variables[target.id] = value
        else:
            _bind_declared(m, target.id, value, env, function)
    elif isinstance(target, ast.Attribute):
        attribute_writes.write(m, evaluate(m, target.value, env), target.attr, value)
    elif isinstance(target, ast.Subscript):
        index = None if isinstance(target.slice, ast.Slice) else evaluate(m, target.slice, env)
        bind_slot(m, evaluate(m, target.value, env), index, value)
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


_HANDLERS: dict[type[ast.expr], Callable[[Interpreter, Any, Env], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Tuple: _sequence,
    ast.List: _sequence,
    ast.Set: _sequence,
    ast.Dict: _dict,
    ast.Lambda: _lambda,
    ast.IfExp: _conditional,
    ast.NamedExpr: _walrus,
    ast.BoolOp: _boolean,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.JoinedStr: _format,
    ast.Compare: _compare,
    ast.ListComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _dict_comprehension,
    ast.Await: _await,
    ast.Starred: _await,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
    ast.Call: _call,
}
