"""Objects of which the constructor's call is known: what its arguments and defaults decide inside the constructor.

``Linear(4)`` has a bias if that is what ``bias=True`` among the parameters says, whatever another ``Linear`` was given.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.values import Obj
from rebindlint.index.classes import ClassInfo, FunctionInfo, InitWrite
from rebindlint.index.modules import text_of

__all__ = ["Constructed", "literal_argument", "possible_writes", "shared_question"]

_MAX_STEPS = 6  # constructors and attributes that an argument is handed through


class Constructed(Obj):
    """``call`` made the object, in ``function``, a constructor of ``maker``."""

    __slots__ = ("call", "function", "maker")

    def __init__(
        self, label: str, cls: ClassInfo, call: ast.Call, function: FunctionInfo, maker: Obj, *, is_module: bool
    ) -> None:
        super().__init__(label, cls, is_module=is_module)
        self.call, self.function, self.maker = call, function, maker


def possible_writes(m: Interpreter, obj: Constructed, name: str, writes: Sequence[InitWrite]) -> list[InitWrite]:
    """Those of the assignments that the arguments leave; what they make certain replaces what stands before it."""
    assert obj.cls is not None
    key = ("possible writes", id(obj.call), id(obj.maker.cls), id(obj.cls), name)
    known: list[InitWrite] | None = m.index.pure.get(key)
    if known is None:
        left: list[InitWrite] = []
        for write in writes:
            reached = _reached(m, obj, write)
            if reached:
                left = [write]
            elif reached is None:
                left.append(write)
        known = left or list(writes)
        if not isinstance(obj.maker, Constructed):  # else the same call is reached with other arguments too
            m.index.pure[key] = known
    return known


def shared_question(m: Interpreter, obj: Constructed, writes: Sequence[InitWrite]) -> str:
    """The expression that decides among the assignments, where it is one argument: what is given the same is alike."""
    tests = {id(test): test for write in writes for test, _ in write.guards}
    test = next(iter(tests.values())) if len(tests) == 1 else None
    if not isinstance(test, ast.Name):
        return ""
    given = _given(obj.call, writes[0].function, test.id) if _own(m, obj) is writes[0].function else None
    return text_of(given) if given is not None else ""


def literal_argument(m: Interpreter, obj: Constructed, function: FunctionInfo, name: str) -> ast.expr | None:
    """The literal that a parameter of a constructor gets, None where it gets no literal."""
    return _argument(m, obj, function, name, _MAX_STEPS)


def _argument(m: Interpreter, obj: Obj, function: FunctionInfo, name: str, steps: int) -> ast.expr | None:
    if not isinstance(obj, Constructed) or obj.cls is None or steps <= 0 or _is_assigned(function, name):
        return None
    chain = [base.methods["__init__"] for base in m.index.mro(obj.cls) if "__init__" in base.methods]
    if function not in chain:
        return None
    position = chain.index(function)
    if not position:
        given, caller, maker = _given(obj.call, function, name), obj.function, obj.maker
    else:
        caller, maker = chain[position - 1], obj
        calls = caller.super_calls
        given = _given(calls[0], function, name) if len(calls) == 1 else None
    if given is None or _is_literal(given):
        return given
    if isinstance(given, ast.Name) and _is_parameter(caller, given.id):
        return _argument(m, maker, caller, given.id, steps - 1)
    return None


def _given(call: ast.Call, function: FunctionInfo, name: str) -> ast.expr | None:
    """The expression that a call hands to a parameter, its default where it hands nothing."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    by_place = dict(zip(function.positional[1:], call.args, strict=False))
    if name in by_place:
        return by_place[name]
    return function.default_of(name)


def _own(m: Interpreter, obj: Constructed) -> FunctionInfo | None:
    return m.index.method(obj.cls, "__init__") if obj.cls is not None else None


def _is_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (
        isinstance(node, (ast.List, ast.Tuple)) and all(isinstance(item, ast.Constant) for item in node.elts)
    )


def _is_parameter(function: FunctionInfo, name: str) -> bool:
    return name in function.positional or any(key == name for key, _ in function.keyword_only)


def _is_assigned(function: FunctionInfo, name: str) -> bool:
    """The parameter is bound again, so that what it was given says nothing."""
    return any(isinstance(t, ast.Name) and t.id == name for node in function.assignments for t in node.targets)


def _reached(m: Interpreter, obj: Constructed, write: InitWrite) -> bool | None:
    """Whether the constructor gets to the assignment; None where the arguments do not tell."""
    if write.function.name != "__init__":
        return None
    if not write.conditional:
        return True
    states = []
    for test, wanted in write.guards:
        state = _holds(m, obj, test, write.function, _MAX_STEPS)
        if state is (not wanted):
            return False
        states.append(state)
    # a loop or a handler is no guard that could be decided
    return True if states and None not in states and write.only_guarded else None


def _holds(m: Interpreter, obj: Constructed, test: ast.expr, function: FunctionInfo, steps: int) -> bool | None:
    if steps <= 0:
        return None
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _holds(m, obj, test.operand, function, steps - 1)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        parts = [_holds(m, obj, part, function, steps - 1) for part in test.values]
        decisive = isinstance(test.op, ast.Or)
        return decisive if decisive in parts else None if None in parts else not decisive
    if isinstance(test, ast.Compare):
        return _compares(m, obj, test, function, steps)
    value = _literal(m, obj, test, function, steps)
    if isinstance(value, ast.Constant):
        return bool(value.value)
    return bool(value.elts) if isinstance(value, (ast.List, ast.Tuple)) else None


def _compares(m: Interpreter, obj: Constructed, test: ast.Compare, function: FunctionInfo, steps: int) -> bool | None:
    """``x is None``, ``x == "literal"``."""
    right, op = test.comparators[0], test.ops[0]
    if len(test.ops) != 1 or not isinstance(right, ast.Constant):
        return None
    left = _literal(m, obj, test.left, function, steps)
    if left is None:
        return None
    value = left.value if isinstance(left, ast.Constant) else left
    if isinstance(op, (ast.Is, ast.IsNot)) and right.value is None:
        return (value is None) == isinstance(op, ast.Is)
    if isinstance(op, (ast.Eq, ast.NotEq)) and isinstance(left, ast.Constant):
        return bool(value == right.value) == isinstance(op, ast.Eq)
    return None


def _literal(m: Interpreter, obj: Constructed, node: ast.expr, function: FunctionInfo, steps: int) -> ast.expr | None:
    """The literal that an expression in a constructor stands for."""
    if _is_literal(node):
        return node
    if isinstance(node, ast.Name) and _is_parameter(function, node.id):
        return _argument(m, obj, function, node.id, steps - 1)
    if (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == function.self_name
        and obj.cls is not None
    ):
        writes = [w for base in m.index.mro(obj.cls) for w in base.writes.get(node.attr, ())]
        if len(writes) == 1 and writes[0].function.name == "__init__" and not writes[0].conditional and writes[0].value:
            return _literal(m, obj, writes[0].value, writes[0].function, steps - 1) if steps > 0 else None
    return None
