"""Conditions that no path got into the arm which binds something: answered on purpose, down into the functions that they call."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeGuard

from rebindlint.execution import conditions, expressions
from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.values import Const, Env, Value

__all__ = ["Aim", "Wanted", "aim_at", "leaves_as", "returned", "steer", "steered_value"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a call should give: something true or not, or a tuple that has such a thing at ``index``."""

    truth: bool
    index: int | None = None


@dataclass(frozen=True, slots=True)
class Aim:
    """``node``, an ``if`` or an assignment, should come out as ``wanted``; ``asked`` questions of the path are answered as they were."""

    condition: int
    node: int
    wanted: Wanted
    asked: int
    goal: frozenset[int]


def aim_at(
    m: Interpreter, node: ast.If, taken: bool, asked: int, keys: Sequence[Hashable], goal: frozenset[int], env: Env
) -> Aim | None:
    """How to get into the arm that the condition did not lead to: by its test, or by the call that gave the variable it tests."""
    if asked < len(m.oracle.asked):
        return Aim(id(node), id(node), Wanted(not taken), asked, goal)
    test: ast.expr = node.test
    wanted = not taken
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, wanted = test.operand, not wanted
    if _tests_none(test):
        wanted = wanted == isinstance(test.ops[0], ast.IsNot)
        test = test.left
    made = env.made_by.get(test.id) if isinstance(test, ast.Name) else None
    first = next((i for i, (key, _) in enumerate(m.oracle.asked) if key in keys), None)
    if made is None or first is None:
        return None
    return Aim(id(node), made[0], Wanted(wanted, made[1]), first, goal)


def _tests_none(test: ast.expr) -> TypeGuard[ast.Compare]:
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], (ast.Is, ast.IsNot))
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value is None
    )


def steer(m: Interpreter, test: ast.expr, env: Env, wanted: bool) -> bool:
    """The truth of a condition: what nothing decides is answered so that it comes out as wanted."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return not steer(m, test.operand, env, not wanted)
    if isinstance(test, ast.BoolOp):
        every = isinstance(test.op, ast.And) == wanted
        for value in test.values:
            if (steer(m, value, env, wanted) == wanted) != every:
                return wanted != every
        return wanted == every
    inner, truth = test, wanted
    if _tests_none(test):
        inner, truth = test.left, wanted == isinstance(test.ops[0], ast.IsNot)
        answer = truth
    else:
        negative = isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.NotEq, ast.NotIn, ast.IsNot))
        answer = wanted != negative
    with _answering(m, inner, Wanted(truth), answer):
        return conditions.truth(m, test, env)


def steered_value(m: Interpreter, node: ast.expr, env: Env, wanted: Wanted) -> Value:
    """What is assigned, with the call that it comes from steered."""
    with _answering(m, node, wanted, wanted.truth):
        return expressions.evaluate(m, node, env)


@contextmanager
def _answering(m: Interpreter, node: ast.expr, wanted: Wanted, answer: bool) -> Iterator[None]:
    default, m.oracle.default = m.oracle.default, int(answer)
    before = m.wanted
    m.wanted = (id(node), wanted) if isinstance(node, ast.Call) else None
    try:
        yield
    finally:
        m.oracle.default, m.wanted = default, before


def leaves_as(node: ast.If, wanted: Wanted) -> bool | None:
    """Whether an arm that leaves the function gives what is wanted of it; None where it does not leave, or that is not plain."""
    last = node.body[-1]
    if not isinstance(last, ast.Return):
        return None
    value = last.value
    if wanted.index is not None and isinstance(value, ast.Tuple):
        value = value.elts[wanted.index] if wanted.index < len(value.elts) else None
    if value is None:
        return not wanted.truth
    return bool(value.value) == wanted.truth if isinstance(value, ast.Constant) else None


def returned(m: Interpreter, node: ast.expr, env: Env, wanted: Wanted) -> Value:
    """What a function gives that is steered."""
    if wanted.index is None and isinstance(node, (ast.BoolOp, ast.UnaryOp, ast.Compare)):
        return Const(steer(m, node, env, wanted.truth))
    return steered_value(m, node, env, wanted)
