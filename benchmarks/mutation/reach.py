"""The functions that a hook is sure to come by: its helpers, the callbacks that it hands on, the constructors it calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from benchmarks.mutation.positions import Position, positions, runs_anything, written_attributes
from benchmarks.mutation.splice import Cut, cut
from benchmarks.mutation.subjects import Subject
from rebindlint.index import Index
from rebindlint.index.classes import ClassInfo, FunctionInfo
from rebindlint.model import RebindlintError

__all__ = ["Reached", "callee", "reached", "sure_statements"]

_DEPTH = 2
_CLASSES = 3  # of a hierarchy
_PART = "fused_experts"  # under which name kernels keep what their factories hand them
_LEFT_ALONE = ("replace_parameter", "set_weight_attrs")  # the tree's dialect is read from the first


@dataclass(frozen=True, slots=True, eq=False)
class Reached:
    """A function in which a statement can be injected. ``names`` maps the hook's objects to their names in it; ``holder``
    is the path from one of these to the object that a constructor makes, else empty."""

    place: str
    cut: Cut
    names: Mapping[str, str]
    positions: tuple[Position, ...]
    inner: str = ""  # the nested function that holds the positions
    holder: str = ""

    @property
    def name(self) -> str:
        return f"{self.cut.function.module.name}:{self.cut.function.qualified}{f'.{self.inner}' if self.inner else ''}"


def reached(index: Index, subject: Subject) -> list[Reached]:
    """The hook itself first. Each function once, by the first way that leads there."""
    hook = _function(subject.cut, {o.name: o.name for o in subject.objects} | _self(subject), "hook")
    found, queue = [hook], [(hook, 0)]
    seen: set[object] = {subject.cut.function.node}
    while queue:
        current, depth = queue.pop(0)
        found.extend(_nested(index, current))
        if depth == _DEPTH:
            continue
        for statement, call in _sure_calls(current):
            target = callee(index, current, call)
            if isinstance(target, FunctionInfo) and target.owner is None:
                found.extend(_made(index, current, statement, call, target, seen))
            if isinstance(target, ClassInfo):
                found.extend(_constructor(index, current, statement, target, seen))
            elif target is not None and target.node not in seen and target.name not in _LEFT_ALONE:
                names = _names_in(target, current, call)
                if names and _is_plain(target):
                    seen.add(target.node)
                    try:
                        own = cut(target)
                    except RebindlintError:
                        continue
                    if runs_anything(own.node):
                        helper = _function(own, names, "helper")
                        found.append(helper)
                        queue.append((helper, depth + 1))
    return found


def _self(subject: Subject) -> dict[str, str]:
    own = subject.hook.function.self_name
    return {own: own} if own else {}


def _function(own: Cut, names: Mapping[str, str], place: str) -> Reached:
    written = written_attributes(own.function.module.text)
    return Reached(place, own, names, tuple(positions(own.node, written, frozenset(names.values()))))


def _is_plain(function: FunctionInfo) -> bool:
    """No generator, no memory of earlier results, nothing that a decorator may leave out."""
    return (
        isinstance(function.node, ast.FunctionDef)
        and not function.is_generator
        and all(name in ("staticmethod", "classmethod", "override") for name in function.decorators)
    )


def sure_statements(current: Reached) -> Iterator[tuple[cst.IndentedBlock, int, cst.BaseStatement]]:
    """Statements of blocks that run in both runs, with their place in the block."""
    for position in current.positions:
        if position.name != "end":
            for index, statement in enumerate(position.block.body[: _limit(current, position)]):
                yield position.block, index, statement


def _sure_calls(current: Reached) -> Iterator[tuple[cst.SimpleStatementLine, cst.Call]]:
    for _, _, statement in sure_statements(current):
        if isinstance(statement, cst.SimpleStatementLine):
            for call in m.findall(statement, m.Call()):
                assert isinstance(call, cst.Call)
                yield statement, call


def _limit(current: Reached, position: Position) -> int:
    """A function's own body counts as far as the next decision about what an earlier run left behind."""
    ends = any(p.name == "end" and p.block is position.block for p in current.positions)
    if position.name != "entry" or ends:
        return len(position.block.body)
    compound = (i for i, s in enumerate(position.block.body) if isinstance(s, cst.If | cst.Try | cst.While))
    return next(compound, len(position.block.body))


def callee(index: Index, current: Reached, call: cst.Call) -> FunctionInfo | ClassInfo | None:
    """What a call by name, of a method of the own class or of a base, leads to."""
    function = current.cut.function
    if m.matches(call.func, m.Name()):
        assert isinstance(call.func, cst.Name)
        found = index.resolve(function.module, call.func.value)
        return found if isinstance(found, FunctionInfo | ClassInfo) else None
    if not isinstance(call.func, cst.Attribute) or function.owner is None:
        return None
    if m.matches(call.func.value, m.Name(function.self_name)):
        return index.method(function.owner, call.func.attr.value)
    if m.matches(call.func.value, m.Call(func=m.Name("super"), args=[])):
        for base in index.mro(function.owner)[1:]:
            if call.func.attr.value in base.methods:
                return base.methods[call.func.attr.value]
    return None


def _names_in(target: FunctionInfo, current: Reached, call: cst.Call) -> dict[str, str]:
    """Under which names the hook's objects are known in the function that is called."""
    spec = target.node.args
    names = [a.arg for a in [*spec.posonlyargs, *spec.args]]
    found: dict[str, str] = {}
    if target.owner is not None and not target.is_static:
        own = next((hook for hook, here in current.names.items() if here == current.cut.function.self_name), None)
        if own is not None and not target.is_classmethod and names:
            found[own] = names[0]
        names = names[1:]
    for position, argument in enumerate(call.args):
        if argument.star or not isinstance(argument.value, cst.Name):
            continue
        hook = next((h for h, here in current.names.items() if here == argument.value.value), None)
        name = argument.keyword.value if argument.keyword else names[position] if position < len(names) else None
        if hook is not None and name is not None:
            found[hook] = name
    return found


def _nested(index: Index, current: Reached) -> Iterator[Reached]:
    """Functions inside the function that it calls, or hands to one that calls its argument."""
    used: dict[str, str] = {}
    for _, call in _sure_calls(current):
        if isinstance(call.func, cst.Name):
            used[call.func.value] = "helper"
        for position, argument in enumerate(call.args):
            if isinstance(argument.value, cst.Name) and _calls_argument(index, current, call, position):
                used.setdefault(argument.value.value, "callback")
    written = written_attributes(current.cut.function.module.text)
    for node in current.cut.node.body.body:
        if isinstance(node, cst.FunctionDef) and node.name.value in used and not node.decorators:
            hidden = {p.name.value for p in node.params.params}
            names = {hook: here for hook, here in current.names.items() if here not in hidden}
            if names:
                places = tuple(positions(node, written, frozenset(names.values())))
                yield Reached(used[node.name.value], current.cut, names, places, node.name.value)


def _calls_argument(index: Index, current: Reached, call: cst.Call, position: int) -> bool:
    target = callee(index, current, call)
    if not isinstance(target, FunctionInfo) or isinstance(target.node, ast.Lambda):
        return False
    names = [a.arg for a in [*target.node.args.posonlyargs, *target.node.args.args]]
    keyword = call.args[position].keyword
    offset = position + (target.owner is not None and not target.is_static)
    name = keyword.value if keyword else names[offset] if offset < len(names) else ""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
        for node in ast.walk(target.node)
    )


def _constructor(
    index: Index, current: Reached, statement: cst.SimpleStatementLine, cls: ClassInfo, seen: set[object]
) -> Iterator[Reached]:
    """``o.attribute = Class(...)``, with a constructor that the tree defines."""
    holder = _bound_path(current, statement, cls.name)
    if holder and not index.is_parameter_class(cls):
        yield from _construction(index, cls, holder, seen)


def _made(
    index: Index,
    current: Reached,
    statement: cst.SimpleStatementLine,
    call: cst.Call,
    factory: FunctionInfo,
    seen: set[object],
) -> Iterator[Reached]:
    """``o.attribute = factory(...)``, where the factory returns a new object; and what it hands to that object's constructor."""
    holder = _bound_path(current, statement, factory.name)
    if not holder or isinstance(factory.node, ast.Lambda):
        return
    for node in ast.walk(factory.node):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Call):
            cls = index.resolve_expression(factory.module, node.value.func)
            if isinstance(cls, ClassInfo) and not cls.is_dataclass:
                yield from _construction(index, cls, holder, seen)
                for argument in node.value.args:
                    yield from _handed_over(index, factory, argument, holder, seen)


def _handed_over(
    index: Index, factory: FunctionInfo, argument: ast.expr, holder: str, seen: set[object]
) -> Iterator[Reached]:
    """``part = part_cls(...)`` with ``part_cls: type[Base]``: classes below the base that the factory's own module names."""
    spec = factory.node.args
    bounds = {
        a.arg: a.annotation for a in [*spec.posonlyargs, *spec.args, *spec.kwonlyargs] if a.annotation is not None
    }
    for node in ast.walk(factory.node):
        if not (
            isinstance(node, ast.Assign)
            and isinstance(argument, ast.Name)
            and any(isinstance(t, ast.Name) and t.id == argument.id for t in node.targets)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Name)
        ):
            continue
        bound = bounds.get(node.value.func.id)
        if not isinstance(bound, ast.Subscript):
            continue
        inner = bound.slice
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            inner = ast.parse(inner.value, mode="eval").body
        base = index.resolve_expression(factory.module, inner)
        if isinstance(base, ClassInfo):
            below = [c for c in index.subclasses(base) if "__init__" in c.methods and c.name in factory.module.text]
            for cls in sorted(below, key=lambda c: c.qualified)[:_CLASSES]:
                yield from _construction(index, cls, holder, seen, part=True)


def _bound_path(current: Reached, statement: cst.SimpleStatementLine, name: str) -> str:
    """``o.attribute`` of ``o.attribute = name(...)``, with the hook's own name for ``o``; else empty."""
    pattern = m.Assign(targets=[m.AssignTarget(target=m.Attribute(value=m.Name()))], value=m.Call(func=m.Name(name)))
    if not m.matches(statement.body[0], pattern):
        return ""
    assert isinstance(statement.body[0], cst.Assign)
    target = cst.ensure_type(statement.body[0].targets[0].target, cst.Attribute)
    owner = cst.ensure_type(target.value, cst.Name).value
    hook = next((h for h, here in current.names.items() if here == owner), None)
    return f"{hook}.{target.attr.value}" if hook is not None else ""


def _construction(
    index: Index, cls: ClassInfo, holder: str, seen: set[object], *, part: bool = False
) -> Iterator[Reached]:
    constructor = index.method(cls, "__init__")
    if constructor is None or constructor.node in seen or not constructor.self_name or not _is_plain(constructor):
        return
    seen.add(constructor.node)
    made = _function(cut(constructor), {holder.partition(".")[0]: constructor.self_name}, "constructor")
    yield Reached(
        "constructor", made.cut, made.names, made.positions[:1], holder=f"{holder}.{_PART}" if part else holder
    )
