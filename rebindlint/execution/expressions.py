"""Evaluation of expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from rebindlint.execution import attributes, calls, conditions, targets
from rebindlint.execution.arithmetic import binary, unary
from rebindlint.execution.interpreter import MAX_STEPS, Interpreter, OutOfBudget
from rebindlint.execution.items import items_of, key_of, subscript
from rebindlint.execution.values import (
    NOTHING,
    Const,
    DictValue,
    Env,
    External,
    Function,
    ListValue,
    Tensor,
    Unknown,
    Value,
    label_of,
)

__all__ = ["evaluate", "generated", "items_of"]


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
    targets.bind(m, node.target, value, env)
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
    return unary(m, node.op, evaluate(m, node.operand, env))


def _binary(m: Interpreter, node: ast.BinOp, env: Env) -> Value:
    return binary(m, node.op, evaluate(m, node.left, env), evaluate(m, node.right, env))


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
        targets.bind(m, first.target, item, env)
        if all(conditions.truth(m, test, env) for test in first.ifs):
            closed = _generate(m, rest, env, emit) and closed
    return closed


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
