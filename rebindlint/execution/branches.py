"""Which questions an arm of a condition hangs on, and which statements that bind something another answer leads to."""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from rebindlint.execution.interpreter import MOST_RECENT, Interpreter
from rebindlint.execution.oracle import FAR
from rebindlint.execution.steering import aim_at
from rebindlint.execution.values import Const, Env, Function, ListValue, Value, is_hollow
from rebindlint.index.bindings import binds
from rebindlint.index.classes import FunctionInfo
from rebindlint.index.modules import descend, is_type_checking

__all__ = [
    "MOST_KEYS",
    "Kind",
    "Shape",
    "bindings_behind",
    "governing",
    "handed",
    "hangs_on",
    "left_out",
    "shape_of",
    "weigh",
]

_PADDING = re.compile(r"(?:^|_)pad(?:_|$)")
_NEAR = 2  # calls from the hook: conditions whose arms are worth several tries
MOST_KEYS = 6  # questions that a value or an arm is said to hang on


class Kind(Enum):
    """What the arms of a condition say about it."""

    OPEN = auto()
    FIRST_ARM = auto()  # one of the arms was taken, so this one is tried first
    HOLDS = auto()  # the other arm refuses
    FAILS = auto()  # this arm refuses
    NEVER = auto()  # for type checkers only


@dataclass(frozen=True, slots=True)
class Shape:
    """What never changes about a condition; ``variables`` and ``attributes`` are names that its test reads.

    ``padded``: the tensors that its arm, where a size is not yet right, puts their padded selves in the place of.
    """

    kind: Kind
    variables: tuple[str, ...]
    attributes: tuple[str, ...]
    padded: tuple[ast.expr, ...] = ()


def shape_of(m: Interpreter, node: ast.If) -> Shape:
    known = m.index.shapes.get(id(node))
    if known is None:
        if is_type_checking(node.test):
            kind = Kind.NEVER
        elif _raises(node.body):
            kind = Kind.FAILS
        elif _raises(node.orelse):
            kind = Kind.HOLDS
        else:
            kind = Kind.FIRST_ARM if _falls_through_to_raise(node.orelse) else Kind.OPEN
        inside = descend(node.test)
        attributes = tuple(n.attr for n in inside if isinstance(n, ast.Attribute))
        sizes = "stride" not in attributes  # padding makes sizes right; what it does to strides is another matter
        known = m.index.shapes[id(node)] = Shape(
            kind,
            tuple(n.id for n in inside if isinstance(n, ast.Name)),
            attributes,
            tuple(n.targets[0] for n in node.body if sizes and isinstance(n, ast.Assign) and _pads(n)),
        )
    assert isinstance(known, Shape)
    return known


def _pads(statement: ast.Assign) -> bool:
    """``x = pad(x, …)``, whatever wraps it or is called on it."""
    target = ast.dump(statement.targets[0]).replace("Store()", "Load()")
    for node in descend(statement.value):
        if isinstance(node, ast.Call) and node.args:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            padded = node.args[0]
            if isinstance(padded, ast.Attribute) and padded.attr == "data":
                padded = padded.value
            if _PADDING.search(name) and ast.dump(padded) == target:
                return True
    return False


def hangs_on(m: Interpreter, target: ast.expr, source: ast.expr, value: Value, env: Env, before: int) -> None:
    """Remember the questions that decided what is bound here, and whether anything is: a later condition on it hangs on them."""
    if isinstance(source, ast.Call):
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        for number, part in enumerate(parts):
            if isinstance(part, ast.Name):
                env.made_by[part.id] = id(source), None if part is target else number
    if isinstance(target, (ast.Tuple, ast.List)):
        _hang_on_parts(m, target, value, env, before)
        return
    keys = (*m.oracle.consulted[before:], *(m.governing[-1] if m.governing else ()))
    if isinstance(value, Const) and len(m.oracle.consulted) == before and env.hangs_on:
        keys = (*keys, *(key for n in descend(source) if isinstance(n, ast.Name) for key in env.hangs_on.get(n.id, ())))
    if isinstance(target, ast.Name):
        if keys or target.id in env.hangs_on:
            env.hangs_on[target.id] = keys
    elif isinstance(target, ast.Attribute):
        m.governed[target.attr] = keys
        if m.run == 1:
            _filled(m, source, value, env, before)


def _filled(m: Interpreter, source: ast.expr, value: Value, env: Env, before: int) -> None:
    """An attribute that is bound to None, or to nothing but that: with another answer it may be bound to tensors."""
    keys = tuple(m.oracle.consulted[before:]) or (
        env.hangs_on.get(source.id, ()) if isinstance(source, ast.Name) else ()
    )
    m.worth_trying(m.frame.statement, keys, done=not is_hollow(value))


def _hang_on_parts(m: Interpreter, target: ast.Tuple | ast.List, value: Value, env: Env, before: int) -> None:
    """What is taken apart hangs on what its parts hung on where they were put together; constants, on what was asked there."""
    if not isinstance(value, ListValue) or len(value.items) != len(target.elts):
        return
    asked = tuple(m.oracle.consulted[before:])
    for number, (inner, item) in enumerate(zip(target.elts, value.items, strict=True)):
        keys = (value.hangs_on[number] if value.hangs_on else ()) or (asked if isinstance(item, Const) else ())
        if isinstance(inner, ast.Name) and keys:
            env.hangs_on[inner.id] = keys


def handed(m: Interpreter, function: Function, node: ast.Call, env: Env) -> dict[str, tuple[Hashable, ...]] | None:
    """Per parameter of a function that is called the questions that decided what it is given."""
    if not (env.hangs_on or m.governed):
        return None
    positional = function.info.positional[function.receiver is not None and not function.info.is_static :]
    found = {}
    for name, argument in [*zip(positional, node.args, strict=False), *((k.arg, k.value) for k in node.keywords)]:
        if isinstance(argument, ast.Starred):
            break
        keys = (
            env.hangs_on.get(argument.id)
            if isinstance(argument, ast.Name)
            else m.governed.get(argument.attr)
            if isinstance(argument, ast.Attribute)
            else None
        )
        if keys and name is not None:
            found[name] = keys
    return found or None


def left_out(m: Interpreter, node: ast.If, taken: bool, keys: Sequence[Hashable], env: Env) -> None:
    """What the other arm would have bound a variable to hangs on the condition too."""
    for name in _stored(m, node)[taken]:
        known = env.hangs_on.get(name, ())
        env.hangs_on[name] = tuple(dict.fromkeys((*known, *keys[-MOST_RECENT:])))[-MOST_KEYS:]


def _stored(m: Interpreter, node: ast.If) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The variables that the first arm of a condition binds, and those that the second one binds."""
    key = ("stored", id(node))
    known: tuple[tuple[str, ...], tuple[str, ...]] | None = m.index.pure.get(key)
    if known is None:
        found = [
            dict.fromkeys(n.id for part in arm for n in descend(part) if isinstance(n, ast.Name) and _is_stored(n))
            for arm in (node.body, node.orelse)
        ]
        known = m.index.pure[key] = (tuple(found[0]), tuple(found[1]))
    return known


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def governing(m: Interpreter, shape: Shape, env: Env) -> Sequence[Hashable]:
    """The questions that a condition hangs on which asks none itself: what it reads was bound, or was not, on their account."""
    found = [key for name in shape.variables for key in env.hangs_on.get(name, ())]
    found += [key for name in shape.attributes for key in m.governed.get(name, ())]
    return found[:MOST_KEYS]


def weigh(m: Interpreter, node: ast.If, taken: bool, keys: Sequence[Hashable], asked: int, env: Env) -> None:
    """An arm that binds nothing is of little interest, one whose bindings were seen already of less."""
    goal = _binding_statements(m, node.orelse if taken else node.body, m.frame.info)
    last = (node.body if taken else node.orelse or [node])[-1]
    leaves = isinstance(last, (ast.Return, ast.Continue, ast.Break))
    if leaves:  # the other arm goes on to what stands behind it
        goal |= bindings_behind(m)
    # without another arm it only leaves something out
    idle = 0 if leaves else FAR if node.orelse else 2 * FAR
    if goal and m.run <= 1 and len(m.frames) <= _NEAR:
        recent = [key for key in dict.fromkeys(reversed(keys)) if key in m.oracle.answers][:MOST_RECENT]
        m.oracle.failed.extend((len(recent), len(keys) - back, key, goal) for back, key in enumerate(recent))
        aim = aim_at(m, node, taken, asked, keys, goal, env)
        if aim is not None:
            m.oracle.aims.append(aim)
    for key in keys:
        m.oracle.goals[key] = m.oracle.goals.get(key, frozenset()) | goal
        m.oracle.idle[key] = min(m.oracle.idle.get(key, idle), idle)


def bindings_behind(m: Interpreter, arm: Sequence[ast.stmt] = ()) -> frozenset[int]:
    """The statements that bind something in an arm of the one that is executed, and behind it in the blocks around it."""
    goal = _binding_statements(m, arm, m.frame.info)
    for body, position in m.frame.blocks:
        goal |= _binding_statements(m, body, m.frame.info, position + 1)
    return goal


def _binding_statements(m: Interpreter, body: Sequence[ast.stmt], info: FunctionInfo, start: int = 0) -> frozenset[int]:
    """Identities of the simple statements in an arm, or behind some place in a block, that bind something."""
    if len(body) <= start:
        return frozenset()
    key = (id(body), start)
    known = m.index.binding_statements.get(key)
    if known is None:
        found = (_bindings_of(m, statement, info) for statement in body[start:])
        known = m.index.binding_statements[key] = frozenset().union(*found)
    return known


def _bindings_of(m: Interpreter, statement: ast.stmt, info: FunctionInfo) -> frozenset[int]:
    if not hasattr(statement, "body"):
        return frozenset((id(statement),)) if _counts(statement, info) else frozenset()
    arms = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    arms += [part.body for name in ("handlers", "cases") for part in getattr(statement, name, [])]
    return frozenset().union(*(_binding_statements(m, arm, info) for arm in arms))


def _counts(statement: ast.stmt, info: FunctionInfo) -> bool:
    if isinstance(statement, ast.Return) and info.gives_either:
        return statement.value is not None
    handed_through = info.handed_through
    return any(
        binds(node) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in handed_through)
        for node in descend(statement)
    )


def _raises(body: list[ast.stmt]) -> bool:
    """An arm that refuses: the hook has got past it in the first run, or there is nothing to capture."""
    return bool(body) and isinstance(body[-1], ast.Raise) and not any(isinstance(node, ast.Return) for node in body)


def _falls_through_to_raise(orelse: list[ast.stmt]) -> bool:
    """``elif …: … else: raise``."""
    while len(orelse) == 1 and isinstance(orelse[0], ast.If):
        orelse = orelse[0].orelse
        if _raises(orelse):
            return True
    return False
