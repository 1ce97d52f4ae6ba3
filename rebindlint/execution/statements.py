"""Execution of statements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from rebindlint.execution import attributes, conditions, steering, tensors
from rebindlint.execution.arithmetic import binary
from rebindlint.execution.branches import (
    MOST_KEYS,
    Kind,
    bindings_behind,
    governing,
    hangs_on,
    left_out,
    shape_of,
    weigh,
)
from rebindlint.execution.expressions import evaluate
from rebindlint.execution.interpreter import (
    MAX_STEPS,
    BreakLoop,
    ContinueLoop,
    Interpreter,
    OutOfBudget,
    Raised,
    Returned,
)
from rebindlint.execution.items import items_of, key_of
from rebindlint.execution.targets import bind
from rebindlint.execution.values import (
    DELETED,
    NOTHING,
    Const,
    DictValue,
    Env,
    Function,
    ListValue,
    Tensor,
    Unknown,
    Value,
)
from rebindlint.index.modules import imported_names, text_of

__all__ = ["execute"]


def execute(m: Interpreter, body: list[ast.stmt], env: Env) -> None:
    frame = m.frames[-1]
    covered = m.covered
    blocks, depth = frame.blocks, len(frame.blocks)
    blocks.append((body, 0))
    for position, node in enumerate(body):
        m.steps += 1
        if m.steps > MAX_STEPS:
            raise OutOfBudget
        frame.statement = node
        covered.add(id(node))
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            if type(node) in _NESTED:
                blocks[depth:] = [(body, position)]  # whatever an exception left behind is gone
            handler(m, node, env)
    del blocks[depth:]


def _expression(m: Interpreter, node: ast.Expr, env: Env) -> None:
    evaluate(m, node.value, env)


def _assign(m: Interpreter, node: ast.Assign, env: Env) -> None:
    before = len(m.oracle.consulted)
    aim = m.oracle.aimed
    if aim is not None and aim.node == id(node.value) and m.run == 1:
        value = steering.steered_value(m, node.value, env, aim.wanted)
    else:
        value = evaluate(m, node.value, env)
    m.frame.statement = node
    for target in node.targets:
        hangs_on(m, target, node.value, value, env, before)
        bind(m, target, value, env)


def _annotated(m: Interpreter, node: ast.AnnAssign, env: Env) -> None:
    if node.value is not None:
        before = len(m.oracle.consulted)
        value = evaluate(m, node.value, env)
        m.frame.statement = node
        hangs_on(m, node.target, node.value, value, env, before)
        bind(m, node.target, value, env)


def _augmented(m: Interpreter, node: ast.AugAssign, env: Env) -> None:
    old = evaluate(m, node.target, env)
    value = evaluate(m, node.value, env)
    m.frame.statement = node
    tensor = attributes.maybe_tensor(old)
    if tensor is not None:
        content = m.terms.of(type(node.op).__name__, m.term(tensor), m.term(value))
        m.transform(tensor, content, tensor.storage.epochs | m.epochs([value]), m.sources([value]))
        return
    if isinstance(old, ListValue) and isinstance(value, ListValue):
        for item in value.items:
            old.items.append(item)
            attributes.note_slot(m, old, len(old.items) - 1, item, None)
        return
    if isinstance(node.target, ast.Subscript) and isinstance(old, Unknown) and not isinstance(value, Const):
        # an element of a tensor, or a tensor in a container: either way what stands there is written in place
        holder = evaluate(m, node.target.value, env)
        if isinstance(holder, Unknown) and holder.home is not None and holder.home[0].is_module:
            whole = attributes.as_tensor(m, holder)
            if whole is not None:
                part = tensors.element(m, whole, None if isinstance(node.target.slice, ast.Slice) else old)
                content = m.terms.of(type(node.op).__name__, m.term(part), m.term(value))
                m.transform(part, content, whole.storage.epochs | m.epochs([value]), m.sources([value]))
        return
    bind(m, node.target, binary(m, node.op, old, value), env)


def _if(m: Interpreter, node: ast.If, env: Env) -> None:
    shape = shape_of(m, node)
    oracle = m.oracle
    keys: Sequence[Hashable] = ()
    if shape.kind is Kind.NEVER:
        execute(m, node.orelse, env)
        return
    if shape.padded and m.run > 1 and _is_padded(m, shape.padded, env):
        m.inside_helpers.add(id(node.test))  # it keeps nothing from being refreshed
        taken = conditions.needs_padding(m, node.test, env)
    elif shape.kind is Kind.OPEN or shape.kind is Kind.FIRST_ARM:
        before, asked = len(oracle.consulted), len(oracle.asked)
        default = oracle.default
        if shape.kind is Kind.FIRST_ARM:
            oracle.default = 1
        wanted = _wanted(m, node) if m.run == 1 else None
        try:
            taken = conditions.truth(m, node.test, env) if wanted is None else steering.steer(m, node.test, env, wanted)
        finally:
            oracle.default = default
        if m.run > 1:
            keys = [key for key, _ in oracle.asked[asked:]]
        else:
            keys = oracle.consulted[before:] or governing(m, shape, env)
        if m.inside_helper and m.run == 1:  # how the first run replaces a parameter makes no difference to the second
            oracle.fixed.update(key for key, _ in oracle.asked[asked:])
        elif keys:
            weigh(m, node, taken, keys, asked, env)
            if m.run == 1:
                left_out(m, node, taken, keys, env)
    else:
        before = len(oracle.consulted)
        taken = conditions.assume(m, node.test, env, shape.kind is Kind.HOLDS)
        if m.run == 1 and taken != (shape.kind is Kind.HOLDS):
            checked = dict.fromkeys((*oracle.consulted[before:], *governing(m, shape, env)))
            oracle.refusing = tuple(checked), bindings_behind(m, node.body if shape.kind is Kind.HOLDS else ())
    m.decided(node.test, taken)
    if not keys:
        execute(m, node.body if taken else node.orelse, env)
        return
    m.governing.append((*keys, *(m.governing[-1] if m.governing else ()))[:MOST_KEYS])
    try:
        execute(m, node.body if taken else node.orelse, env)
    finally:
        m.governing.pop()
    if shape.padded and taken and m.run == 1:
        m.padded.update(tensor.storage.number for tensor in _tensors(m, shape.padded, env))


def _wanted(m: Interpreter, node: ast.If) -> bool | None:
    """How the condition is to come out on this path, where it is to."""
    aim, inside = m.oracle.aimed, m.frame.wanted
    if aim is not None and aim.node == id(node):
        return aim.wanted.truth
    return steering.leaves_as(node, inside) if inside is not None else None


def _is_padded(m: Interpreter, targets: Sequence[ast.expr], env: Env) -> bool:
    """Whether the first run padded one of the tensors, and nothing has made another one of it since."""
    return bool(m.padded) and any(tensor.storage.number in m.padded for tensor in _tensors(m, targets, env))


def _tensors(m: Interpreter, targets: Sequence[ast.expr], env: Env) -> list[Tensor]:
    values = [env.find(node.id) if isinstance(node, ast.Name) else evaluate(m, node, env) for node in targets]
    found = [attributes.maybe_tensor(value) for value in values if value is not None]
    return [tensor for tensor in found if tensor is not None]


def _for(m: Interpreter, node: ast.For | ast.AsyncFor, env: Env) -> None:
    items, _ = items_of(m, evaluate(m, node.iter, env), node.iter)
    try:
        for item in items:
            m.frame.statement = node
            bind(m, node.target, item, env)
            try:
                execute(m, node.body, env)
            except ContinueLoop:
                continue
        execute(m, node.orelse, env)
    except BreakLoop:
        return


def _while(m: Interpreter, node: ast.While, env: Env) -> None:
    if not conditions.truth(m, node.test, env):
        return
    try:
        execute(m, node.body, env)
    except (BreakLoop, ContinueLoop):
        return


def _return(m: Interpreter, node: ast.Return, env: Env) -> None:
    if node.value is not None and m.run == 1 and m.frame.wanted is not None:
        raise Returned(steering.returned(m, node.value, env, m.frame.wanted))
    raise Returned(evaluate(m, node.value, env) if node.value is not None else NOTHING)


def _raise(m: Interpreter, node: ast.Raise, env: Env) -> None:
    raise Raised


def _with(m: Interpreter, node: ast.With | ast.AsyncWith, env: Env) -> None:
    for item in node.items:
        value = evaluate(m, item.context_expr, env)
        if item.optional_vars is not None:
            bind(
                m,
                item.optional_vars,
                value if not isinstance(value, ListValue) or not value.items else value.items[0],
                env,
            )
    execute(m, node.body, env)


def _try(m: Interpreter, node: ast.Try | ast.TryStar, env: Env) -> None:
    try:
        if (
            node.handlers
            and _only_imports(node.body)
            and not m.ask(f"import {text_of(node.body[0])[:60]}", node, default=1)
        ):
            execute(m, node.handlers[0].body, env)
        else:
            _protected(m, node, env)
    finally:
        execute(m, node.finalbody, env)


def _protected(m: Interpreter, node: ast.Try | ast.TryStar, env: Env) -> None:
    expects = any(_catches_absence(handler) for handler in node.handlers)
    m.expects_absence += expects
    try:
        execute(m, node.body, env)
    except Raised:
        if not node.handlers:
            raise
        m.expects_absence -= expects
        expects = False
        execute(m, node.handlers[0].body, env)
        return
    finally:
        m.expects_absence -= expects
    execute(m, node.orelse, env)


def _catches_absence(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(kind, ast.Name) and kind.id in ("AttributeError", "KeyError") for kind in kinds)


def _only_imports(body: list[ast.stmt]) -> bool:
    return all(isinstance(node, (ast.Import, ast.ImportFrom)) for node in body)


def _assert(m: Interpreter, node: ast.Assert, env: Env) -> None:
    """What is asserted is assumed; evaluating it may narrow types.

    The first run did get past it: where our state says otherwise, the state is what is imprecise.
    """
    if conditions.assume(m, node.test, env, True):
        return
    if m.run == 1 and _is_given_none(node.test, env):
        raise Raised
    if m.run == 1:
        m.passed_over.add(m.place(node))
    elif m.place(node) not in m.passed_over:
        raise Raised
    _take_as_there(m, node.test, env)


def _take_as_there(m: Interpreter, test: ast.expr, env: Env) -> None:
    """A tensor's tag that an assertion insists on is there: which ones a tensor has, nothing in the tree tells."""
    for part in test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]:
        if isinstance(part, ast.Compare) and text_of(part).endswith(" is not None"):
            part = part.left
        if isinstance(part, ast.Name) and env.variables.get(part.id) is NOTHING and _is_tag(part.id, env):
            env.variables[part.id] = Unknown(f"{part.id} asserted in {env.module.name}:{test.lineno}")


def _is_tag(name: str, env: Env) -> bool:
    """Whether the variable is what ``getattr(tensor, "tag", None)`` gave."""
    for node in env.function.assignments if env.function is not None else ():
        call = node.value
        if any(isinstance(t, ast.Name) and t.id == name for t in node.targets) and isinstance(call, ast.Call):
            owner = call.args[0] if call.args and text_of(call.func) == "getattr" else None
            value = env.find(owner.id) if isinstance(owner, ast.Name) else None
            return value is not None and attributes.maybe_tensor(value) is not None
    return False


def _is_given_none(test: ast.expr, env: Env) -> bool:
    """Whether the caller gave None for a parameter that the assertion insists on: no imprecise state, but another arm."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_is_given_none(part, env) for part in test.values)
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot):
        test = test.left
    function = env.function
    return (
        isinstance(test, ast.Name)
        and function is not None
        and (test.id in function.positional or any(a.arg == test.id for a in function.node.args.kwonlyargs))
        and env.variables.get(test.id) is NOTHING
    )


def _delete(m: Interpreter, node: ast.Delete, env: Env) -> None:
    for target in node.targets:
        if isinstance(target, ast.Attribute):
            attributes.delete(m, evaluate(m, target.value, env), target.attr)
        elif isinstance(target, ast.Subscript):
            holder = evaluate(m, target.value, env)
            key = key_of(evaluate(m, target.slice, env))
            if isinstance(holder, DictValue) and key in holder.items:
                old = holder.items.pop(key)
                if holder.owner is not None:
                    holder.owner.attributes[str(key)] = DELETED
                attributes.note_slot(m, holder, key, NOTHING, old)
        elif isinstance(target, ast.Name):
            env.variables.pop(target.id, None)


def _define(m: Interpreter, node: ast.FunctionDef | ast.AsyncFunctionDef, env: Env) -> None:
    info = m.index.function_info(env.module, node)
    env.variables[node.name] = Function(info, env)


def _define_class(m: Interpreter, node: ast.ClassDef, env: Env) -> None:
    from rebindlint.execution.values import ClassValue

    env.variables[node.name] = ClassValue(m.index.class_info(env.module, node))


def _import(m: Interpreter, node: ast.Import | ast.ImportFrom, env: Env) -> None:
    for name, imported in imported_names(node, env.module.name, env.module.is_package):
        if name != "*":
            env.variables[name] = attributes.resolved_value(
                m, m.index.imported(imported), env.module, imported.name or imported.module
            )


def _break(m: Interpreter, node: ast.Break, env: Env) -> None:
    raise BreakLoop


def _continue(m: Interpreter, node: ast.Continue, env: Env) -> None:
    raise ContinueLoop


def _match(m: Interpreter, node: ast.Match, env: Env) -> None:
    subject = evaluate(m, node.subject, env)
    for case in node.cases:
        if _matches(m, subject, case.pattern, env) and (case.guard is None or conditions.truth(m, case.guard, env)):
            execute(m, case.body, env)
            return


def _matches(m: Interpreter, subject: Value, pattern: ast.pattern, env: Env) -> bool:
    if isinstance(pattern, ast.MatchValue):
        return conditions.compare(m, ast.Eq(), subject, evaluate(m, pattern.value, env), pattern)
    if isinstance(pattern, ast.MatchSingleton):
        return conditions.compare(m, ast.Is(), subject, Const(pattern.value), pattern)
    if isinstance(pattern, ast.MatchAs):
        if pattern.pattern is not None and not _matches(m, subject, pattern.pattern, env):
            return False
        if pattern.name is not None:
            env.variables[pattern.name] = subject
        return True
    if isinstance(pattern, ast.MatchOr):
        return any(_matches(m, subject, inner, env) for inner in pattern.patterns)
    return bool(m.ask("?", pattern))


_NESTED = frozenset(
    {ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match}
)
_HANDLERS: dict[type[ast.stmt], Callable[[Interpreter, Any, Env], None]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.TryStar: _try,
    ast.Assert: _assert,
    ast.Delete: _delete,
    ast.FunctionDef: _define,
    ast.AsyncFunctionDef: _define,
    ast.ClassDef: _define_class,
    ast.Import: _import,
    ast.ImportFrom: _import,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Match: _match,
}
