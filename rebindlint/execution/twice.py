"""The four moments: load, hook, capture; reload, hook, check. One execution of a hook along one plan."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from dataclasses import dataclass, field

from rebindlint.execution import calls, initial, ranks
from rebindlint.execution.annotations import annotated
from rebindlint.execution.cells import Captured, Edge, walk
from rebindlint.execution.containers import fill_containers
from rebindlint.execution.interpreter import (
    MAX_STEPS,
    BreakLoop,
    Condition,
    ContinueLoop,
    Frame,
    Interpreter,
    OutOfBudget,
    Raised,
    Returned,
    Site,
)
from rebindlint.execution.naming import names_weight
from rebindlint.execution.oracle import Oracle
from rebindlint.execution.reload import Unloadable, reload
from rebindlint.execution.values import (
    Const,
    DictValue,
    Env,
    Function,
    ListValue,
    Obj,
    Scalar,
    Tensor,
    Unknown,
    Value,
    is_hollow,
)
from rebindlint.execution.workspaces import fill_workspaces
from rebindlint.index.classes import FunctionInfo
from rebindlint.index.hooks import LAYER_NAMES, Hook
from rebindlint.index.loaders import WEIGHTS, is_module_annotation
from rebindlint.index.tree import Index
from rebindlint.model import Protocol

__all__ = ["Outcome", "execute_twice"]

_LAZY_STEPS = 6_000  # of run-time code: what is behind that builds no cache of one weight


@dataclass(slots=True, eq=False)
class Outcome:
    """What one execution under one protocol came to. ``completed``: both runs ended; else why not."""

    interpreter: Interpreter
    protocol: Protocol
    roots: list[tuple[str, Value]]
    completed: bool
    refused: bool = False  # the second run raised: reloading fails closed
    unloadable: bool = False  # not the hook but the loader refuses, whatever the hook does
    over_budget: bool = False
    captured: list[Captured] | None = None
    numbers: list[tuple[tuple[Edge, ...], Scalar]] = field(default_factory=list)  # read from weights, at capture
    first_sites: dict[tuple[int, object], Site] | None = None
    first_moved: dict[int, Site] | None = None
    first_copies: dict[int, Site] | None = None
    first_conditions: list[Condition] | None = None
    asked: int = 0  # how many questions by the end of the first run


def execute_twice(
    index: Index,
    hook: Hook,
    oracle: Oracle,
    protocol: Protocol,
    *,
    restored: bool = False,
    tolerant: bool = False,
    known: set[Hashable] | None = None,
) -> Outcome:
    """Load, run, capture, reload, run. Cells are compared by the caller.

    ``known`` holds what earlier paths bound in their first run: a path that binds the same is not followed further.
    """
    m = Interpreter(index, oracle)
    m.tolerant, m.lazy = tolerant, hook.lazy
    receiver, arguments = _objects(m, hook)
    roots: list[tuple[str, Value]] = [("self", receiver)] if receiver is not None else []
    roots += [(name, value) for name, value in arguments.items() if isinstance(value, Obj)]
    outcome = Outcome(m, protocol, roots, completed=False)
    oracle.recording = False
    _load(m, hook, receiver, arguments)
    if isinstance(receiver, Obj) and receiver.is_module:
        initial.tie(m, receiver)
    if protocol is Protocol.SLEEP:
        for _, root in roots:
            if isinstance(root, Obj):
                initial.allocate_all(m, root)
    oracle.loading = list(oracle.asked)
    oracle.asked.clear()
    oracle.consulted.clear()
    oracle.recording = True
    try:
        _run(m, 1, hook, receiver, arguments)
    except Raised:
        return outcome
    except (OutOfBudget, RecursionError):
        outcome.over_budget = True
        return outcome
    if known is not None:
        signature = _signature(m)
        if signature in known:
            outcome.captured = []
            return outcome
        known.add(signature)
    if not hook.lazy:
        fill_workspaces(m, roots)
    outcome.captured = walk(m, [*roots, *shared_roots(m)], outcome.numbers)
    outcome.first_sites, outcome.first_moved, outcome.first_conditions = m.sites, m.moved, list(m.conditions)
    outcome.first_copies, outcome.asked = m.copies, len(oracle.asked)
    oracle.recording = False
    bound = [*m.sites.values(), *m.moved.values()]
    m.bound_before = [
        s for s in bound if isinstance(s.value, Tensor) and (hook.from_loading or not s.value.storage.epochs)
    ]
    m.run, m.sites, m.moved, m.moved_earlier, m.copies, m.conditions, m.steps = 2, {}, {}, {}, {}, [], 0
    try:
        restore = reload(m, hook, roots, outcome.captured, protocol, restored)
        if protocol is not Protocol.DIRECT and hook.after_model:
            m.run = 2  # it is not called again
        else:
            _run(m, 2, hook, receiver, arguments)
    except Raised as error:
        outcome.refused, outcome.unloadable = True, isinstance(error, Unloadable)
        return outcome
    except (OutOfBudget, RecursionError):
        outcome.over_budget = True
        return outcome
    try:
        restore.apply(m)
    except Raised:
        outcome.refused = outcome.unloadable = True
        return outcome
    outcome.completed = True
    return outcome


def _signature(m: Interpreter) -> Hashable:
    """What the first run bound where: two paths that agree in it differ in nothing that the second run could show."""

    def shape(value: Value) -> Hashable:
        if isinstance(value, Tensor):
            return (
                value.storage.born,
                value.is_parameter,
                value.strided,
                value.certain,
                bool(value.storage.epochs),
                value.path == 0,
                value.storage.on_host,
                value.storage.empty,
                value.storage.cast,
            )
        if isinstance(value, ListValue):
            return type(value).__name__, is_hollow(value)
        return type(value).__name__ if not isinstance(value, Const) else repr(value.value)

    bound = [(id(site.statement), str(key), site.binding, shape(site.value)) for (_, key), site in m.sites.items()]
    moved = [(id(site.statement), site.binding, shape(site.value)) for site in [*m.moved.values(), *m.copies.values()]]
    return (frozenset(bound), frozenset(moved), frozenset(m.transformed), len(m.overlaps), len(m.rejected))


def _objects(m: Interpreter, hook: Hook) -> tuple[Value | None, dict[str, Value]]:
    """The receiver and the arguments that the loader calls the hook with."""
    info = hook.function
    receiver: Value | None = None
    if hook.receiver is not None and not info.is_static:
        receiver = Obj("self", hook.receiver, is_module=m.index.is_module(hook.receiver))
    arguments: dict[str, Value] = {}
    spec = info.node.args
    names = [*spec.posonlyargs, *spec.args][1 if receiver is not None else 0 :]
    required = names[: len(names) - len(spec.defaults)] if spec.defaults else names
    for argument in names:
        if hook.lazy and receiver is None and argument is names[0] and argument.arg == "self":
            arguments["self"] = Obj("self", is_module=True, exact=False)  # it is put in the place of a method
        elif argument.arg in LAYER_NAMES or is_module_annotation(argument.annotation):
            arguments[argument.arg] = _layer(m, info, argument)
        elif argument in required or (hook.lazy and names_weight(argument.arg)):
            arguments[argument.arg] = _argument(m, info, argument)
    return receiver, arguments


def _layer(m: Interpreter, info: FunctionInfo, argument: ast.arg) -> Obj:
    value = Obj(argument.arg, is_module=True, exact=False)
    if argument.annotation is not None:
        found = annotated(m, argument.annotation, info.module, argument.arg, None, optional=False)
        if isinstance(found, Obj) and found.cls is not None:
            value.cls = found.cls
    return value


def _argument(m: Interpreter, info: FunctionInfo, argument: ast.arg) -> Value:
    return Unknown(f"argument {argument.arg}")


def _load(m: Interpreter, hook: Hook, receiver: Value | None, arguments: dict[str, Value]) -> None:
    """What ``create_weights`` of the hook's own class registers on the layer, before any weight is loaded."""
    layer = next((v for v in arguments.values() if isinstance(v, Obj) and v.is_module), None)
    if hook.receiver is None or layer is None or not isinstance(receiver, Obj):
        return
    method = m.index.method(hook.receiver, "create_weights")
    if method is None or method.self_name == "":
        return
    names = [a.arg for a in method.node.args.posonlyargs + method.node.args.args + method.node.args.kwonlyargs]
    given = next((name for name in names if name in LAYER_NAMES), None)
    if given is None:
        return
    m.frames.append(Frame(method, Env(method.module, method), method.node))
    try:
        calls.enter(m, Function(method, None, receiver), [], {given: layer}, method.node)
        if layer.registered:
            m.created_by[id(layer)] = hook.receiver
    except (Raised, Returned, BreakLoop, ContinueLoop, OutOfBudget, RecursionError):
        pass  # what was registered up to there is what is known
    finally:
        m.frames.clear()
    m.steps = 0
    _mark_loaded(m, layer)
    _mark_loaded(m, receiver)
    m.sites, m.moved, m.moved_earlier, m.copies, m.conditions = {}, {}, {}, {}, []


def _mark_loaded(m: Interpreter, obj: Obj) -> None:
    for name, value in obj.attributes.items():
        if isinstance(value, Tensor):
            label = f"{obj.label}.{name}"
            value.home = label
            storage = value.storage
            storage.born = storage.changed = 0
            if name in obj.registered:
                storage.content, storage.epochs, storage.weight = m.terms.of("weight", label), 1, label
                created, value.shape = value.shape, m.terms.of("shape", label)
                ranks.of_loaded(m, created, value.shape)
            obj.initial[name] = (value.dtype, value.shape)
            if name in obj.registered and value.is_parameter:
                obj.loaded.add(name)
                fill_containers(m, value)


def _run(m: Interpreter, number: int, hook: Hook, receiver: Value | None, arguments: dict[str, Value]) -> None:
    m.run = number
    m.frames = []
    if hook.lazy:
        m.steps = MAX_STEPS - _LAZY_STEPS
    given = dict(arguments)
    if hook.from_loading:
        given.update({name: _checkpoint(m) for name in arguments if name == WEIGHTS})
    calls.enter(m, Function(hook.function, None, receiver), [], given, hook.function.node)


def _checkpoint(m: Interpreter) -> Value:
    """The names and tensors that a loading function is given: new memory in each load."""
    tensor = m.fresh("checkpoint")
    tensor.storage.epochs = m.run  # the numbers of runs are the bits of loads
    return ListValue([ListValue([Unknown("name in the checkpoint"), tensor])], closed=False)


def shared_roots(m: Interpreter) -> list[tuple[str, Value]]:
    """Module globals, class attributes and remembered results that the execution bound or looked at, as they are now."""
    found: list[tuple[str, Value]] = [
        (name, value) for (_, name), value in m.globals.items() if not isinstance(value, (Const, Unknown, Tensor))
    ]
    classes = {id(cls): cls for cls in m.keep if hasattr(cls, "qualified")}
    for (number, name), value in m.class_attributes.items():
        if not isinstance(value, (Const, Unknown)):
            found.append((f"{getattr(classes.get(number), 'name', 'class')}.{name}", value))
    found += [("cache", value) for value in m.cached.values() if not isinstance(value, (Const, Unknown))]
    kept: dict[object, Value] = {name: value for (_, name), value in m.globals.items() if isinstance(value, Tensor)}
    return [*found, ("globals", DictValue(kept))] if kept else found
