"""Comparisons of sizes that the first run has settled: it put a tensor in place that fits."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from rebindlint.execution.interpreter import Interpreter, Site
from rebindlint.execution.values import Tensor, Value, label_of

__all__ = ["settled"]

_SHAPE = re.compile(r"\bshape(\d+)")


def settled(m: Interpreter, left: Value, right: Value, node: ast.AST) -> bool | None:
    """What a comparison in the test of an ``if`` comes to in the second run, where it led the first run to bind what is compared.

    None where it did not. A test of a tensor against itself, as of its rows against its columns, settles nothing.
    """
    statement = m.frame.statement
    if m.run != 2 or m.inside_helper or not isinstance(statement, ast.If):
        return None
    first, second = _shapes(left), _shapes(right)
    compared = first ^ second
    if not compared:
        return None
    for site in m.bound_before:
        if isinstance(site.value, Tensor) and str(site.value.shape) in compared:
            arm = _arm(m, statement, site)
            if arm is not None:
                return next((arm == negated for found, negated in _leaves(statement.test) if found is node), None)
    return None


def _shapes(value: Value) -> set[str]:
    return set(_SHAPE.findall(label_of(value)))


def _arm(m: Interpreter, statement: ast.If, site: Site) -> bool | None:
    """What the test was in the run that bound: by the arm that the binding, or a call on the way to it, stands in."""
    info = m.frame.info
    rows = [row for shown, row, name in site.chain if shown == info.module.shown and name == info.qualified]
    for arm, body in ((True, statement.body), (False, statement.orelse)):
        if body and any(body[0].lineno <= row <= (body[-1].end_lineno or 0) for row in rows):
            return arm
    leaves = isinstance(statement.body[-1], (ast.Return, ast.Continue, ast.Break)) and not statement.orelse
    return False if leaves and any(row > (statement.end_lineno or 0) for row in rows) else None


def _leaves(test: ast.expr, negated: bool = False) -> Iterator[tuple[ast.expr, bool]]:
    """The conditions that the test is made of, and whether it is their opposite that counts."""
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _leaves(value, negated)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _leaves(test.operand, not negated)
    else:
        yield test, negated
