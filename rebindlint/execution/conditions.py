"""The truth of conditions: decided by the state, else asked of the oracle, the same way in both runs."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

from rebindlint.execution import expressions, promotion, ranks
from rebindlint.execution.dtypes import same_dtype
from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.items import key_of
from rebindlint.execution.settled import settled
from rebindlint.execution.sizes import shape_called
from rebindlint.execution.values import (
    DELETED,
    BoundMethod,
    ClassValue,
    Const,
    DictValue,
    Env,
    External,
    Function,
    ListValue,
    ModuleValue,
    Obj,
    Partial,
    Tensor,
    Unknown,
    Value,
    is_stable,
    label_of,
)

_ORDERINGS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_SIZE = re.compile(r"shape\d+(?:$|\[|\.)")  # what a tensor's shape and sizes are called, which are never None
__all__ = ["assume", "compare", "is_true", "needs_padding", "truth"]


def truth(m: Interpreter, node: ast.expr, env: Env) -> bool:
    """Whether the condition holds in this run."""
    if isinstance(node, ast.BoolOp):
        wanted = isinstance(node.op, ast.Or)
        for value in node.values:
            if truth(m, value, env) == wanted:
                return wanted
        return not wanted
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not truth(m, node.operand, env)
    if isinstance(node, ast.Compare):
        left = expressions.evaluate(m, node.left, env)
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = expressions.evaluate(m, right_node, env)
            if not compare(m, op, left, right, node):
                return False
            left = right
        return True
    return is_true(m, expressions.evaluate(m, node, env), node)


def assume(m: Interpreter, test: ast.expr, env: Env, wanted: bool) -> bool:
    """The truth of a condition that code insists on: what nothing decides is taken as wanted, and no arm is opened for it."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return not assume(m, test.operand, env, not wanted)
    if isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) == wanted:
            return wanted if all(assume(m, value, env, wanted) == wanted for value in test.values) else not wanted
        # ``x is None or isinstance(x, T)`` says what ``x`` is when it is there, which is what matters
        values = sorted(test.values, key=_tests_none) if wanted else test.values
        return any(assume(m, value, env, wanted) == wanted for value in values) == wanted
    negative = (
        isinstance(test, ast.Compare)
        and len(test.ops) == 1
        and (
            isinstance(test.ops[0], (ast.NotEq, ast.NotIn))
            or (isinstance(test.ops[0], ast.Is) and _is_none_node(test.comparators[0]))
            or (isinstance(test.ops[0], ast.IsNot) and not _is_none_node(test.comparators[0]))
        )
    )
    before = len(m.oracle.asked)
    default, m.oracle.default = m.oracle.default, int(wanted != negative)
    try:
        answer = truth(m, test, env)
    finally:
        m.oracle.default = default
    m.oracle.fixed.update(key for key, _ in m.oracle.asked[before:])
    return answer


def needs_padding(m: Interpreter, test: ast.expr, env: Env) -> bool:
    """Whether sizes are still to be padded in the second run: those of what the first run left are as it made them."""
    m.oracle.afresh = True
    try:
        return assume(m, test, env, wanted=False)
    finally:
        m.oracle.afresh = False


def _tests_none(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is) and _is_none_node(test.comparators[0])


def _is_none_node(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def is_true(m: Interpreter, value: Value, node: ast.AST) -> bool:
    if isinstance(value, Const):
        return bool(value.value)
    if isinstance(value, (Function, ClassValue, ModuleValue, Partial, BoundMethod, External)):
        return True
    if isinstance(value, Obj):
        return True
    if isinstance(value, ListValue):
        return bool(value.items) or (not value.closed and bool(m.ask("?", node)))
    if isinstance(value, DictValue):
        return bool(value.items) or (not value.closed and bool(m.ask("?", node)))
    if isinstance(value, Tensor) or (isinstance(value, Unknown) and value.tensor is not None):
        return bool(m.ask("?", node))
    return bool(m.ask(label_of(value), node))


def compare(m: Interpreter, op: ast.cmpop, left: Value, right: Value, node: ast.AST) -> bool:
    kind = type(op)
    if kind is ast.Is or kind is ast.IsNot:
        return _identical(m, left, right, node) == (kind is ast.Is)
    fits = settled(m, left, right, node) if m.run == 2 and m.bound_before else None
    if fits is not None:
        return fits
    if kind is ast.Eq or kind is ast.NotEq:
        return _equal(m, left, right, node) == (kind is ast.Eq)
    if kind is ast.In or kind is ast.NotIn:
        return _contained(m, left, right, node) == (kind is ast.In)
    if isinstance(left, Const) and isinstance(right, Const):
        try:
            return bool(_ORDERINGS[type(op)](left.value, right.value))
        except TypeError:
            return bool(m.ask("?", node))
    a, b = label_of(left), label_of(right)
    if a == b and is_stable(a):
        return isinstance(op, (ast.LtE, ast.GtE))
    return bool(m.ask(f"{a} {type(op).__name__} {b}", node))


def _identical(m: Interpreter, left: Value, right: Value, node: ast.AST) -> bool:
    if isinstance(right, Const) and right.value is None:
        return _is_none(m, left, node)
    if isinstance(left, Const) and left.value is None:
        return _is_none(m, right, node)
    first, second = promotion.maybe_tensor(left), promotion.maybe_tensor(right)
    if first is not None and second is not None:
        return first is second
    if left is right:
        return True
    return _equal(m, left, right, node)


def _is_none(m: Interpreter, value: Value, node: ast.AST) -> bool:
    if isinstance(value, Const):
        return value.value is None
    if isinstance(value, Unknown):
        if value.tensor is None:
            if _SIZE.match(value.label):
                return False
            return not m.ask(f"{value.label} is not None", node, default=None if is_stable(value.label) else 1)
        if value.tensor.storage.born == 0 and value.home is not None:
            return False
    return False


def _equal(m: Interpreter, left: Value, right: Value, node: ast.AST) -> bool:
    if isinstance(left, Const) and isinstance(right, Const):
        return bool(left.value == right.value)
    if isinstance(left, Const) and left.value is None:
        return _is_none(m, right, node)
    if isinstance(right, Const) and right.value is None:
        return _is_none(m, left, node)
    if isinstance(left, ClassValue) and isinstance(right, ClassValue):
        return left.info is right.info
    if promotion.maybe_tensor(left) is not None or promotion.maybe_tensor(right) is not None:
        return bool(m.ask("?", node))
    if isinstance(left, ListValue) and isinstance(right, ListValue) and left.closed and right.closed:
        return len(left.items) == len(right.items) and all(
            _equal(m, a, b, node) for a, b in zip(left.items, right.items, strict=True)
        )
    a, b = label_of(left), label_of(right)
    if a == b and is_stable(a):
        return True
    if isinstance(left, External) and isinstance(right, External) and _are_members(a, b):
        return False
    layout = _same_layout(m, a, b, node)
    if layout is not None:
        return layout
    if a.startswith("ptr") and b.startswith("ptr"):
        return False  # equal labels were equal already: other storage, other address
    if _is_dtype(a) and _is_dtype(b):
        return same_dtype(m, a, b, node)
    if not (is_stable(a) and is_stable(b)):
        return bool(m.ask("?", node))
    if isinstance(left, (Const, ClassValue)):
        a, b = b, a
        left, right = right, left
    answer = m.oracle.equal(a, b, m.place(node), constant=isinstance(right, (Const, ClassValue)))
    if answer and not m.inside_helper:  # what a replace helper is given is a parameter
        _take_type(m, left, right)
    return answer


def _take_type(m: Interpreter, left: Value, right: Value) -> None:
    """What has the type of a tensor is a tensor of that type from now on, so that the second run finds it to be one too."""
    if not (isinstance(left, Unknown) and left.made_from is not None and left.made_from[0] == "type"):
        return
    name = right.value[1] if isinstance(right, Const) and isinstance(right.value, tuple) else ""
    tensor = promotion.as_tensor(m, left.made_from[1][0]) if name in ("Tensor", "Parameter") else None
    if tensor is not None:
        tensor.is_parameter = name == "Parameter"
        if not tensor.is_parameter and isinstance(thing := left.made_from[1][0], Unknown) and thing.home is not None:
            thing.home[0].registered.discard(thing.home[1])


def _are_members(left: str, right: str) -> bool:
    """Two members of one enumeration outside the tree, by how they are spelt."""
    (home, _, first), (other, _, second) = left.rpartition("."), right.rpartition(".")
    return home == other and home.rpartition(".")[2][:1].isupper() and first.isupper() and second.isupper()


def _is_dtype(label: str) -> bool:
    return label.startswith(("torch.", "dtype"))


def _same_layout(m: Interpreter, left: str, right: str, node: ast.AST) -> bool | None:
    """Shapes and strides inside the tree's replace helpers, which compare what was with what comes.

    In the first run nothing says that they agree, so the helper rebinds. In the second run the same expression was bound
    before, so they agree unless a stride is known to differ; or the rank, where the reload put the checkpoint's shapes back.
    """
    if not m.inside_helper:
        return None
    if not (left.startswith(("shape", "stride")) and right.startswith(("shape", "stride"))):
        return None
    first, second = shape_called(left), shape_called(right)
    if m.restored and first is not None and second is not None and ranks.differ(m, first, second):
        return False
    return m.run == 2 and left.partition("[")[0].endswith("s") == right.partition("[")[0].endswith("s")


def _contained(m: Interpreter, left: Value, right: Value, node: ast.AST) -> bool:
    if isinstance(right, ListValue) and right.closed:
        return any(_equal(m, left, item, node) for item in right.items)
    if isinstance(right, DictValue):
        key = key_of(left)
        if key in right.items:
            found = right.items[key]
            return found is not DELETED
        if right.closed and isinstance(left, Const):
            return False
    if isinstance(left, Const) and isinstance(right, Const):
        try:
            return left.value in right.value  # type: ignore[operator]
        except TypeError:
            return False
    added = m.named.get(right.label) if isinstance(right, Unknown) else None
    if isinstance(added, ListValue) and any(_is_same(left, item) for item in added.items):
        return True
    return bool(m.ask(f"{label_of(left)} in {label_of(right)}", node))


def _is_same(left: Value, right: Value) -> bool:
    label = label_of(left)
    return left is right or (is_stable(label) and label == label_of(right))
