"""What the run-time methods of a class read of the layer that they are given, wherever they hand it to."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebindlint.index.classes import ClassInfo, FunctionInfo
from rebindlint.index.handed import Escaped, Names, bound_inside, given, is_name, name_of, spelt
from rebindlint.index.hooks import LAYER_NAMES, Hook, is_loading_name
from rebindlint.index.modules import imported_names

if TYPE_CHECKING:
    from rebindlint.index.tree import Index

__all__ = ["Guards", "LayerReads", "reads_of_layer", "settings_of"]

Guards = frozenset[tuple[str, bool]]  # attributes of the class's own object, and what they are where it is read
LayerReads = dict[str, frozenset[Guards]]

_NAMING = ("getattr", "hasattr")
_HARMLESS = ("isinstance", "setattr", "delattr", "id", "type", "callable")
_MOST_FUNCTIONS = 80
_NO_GUARDS: Guards = frozenset()


@dataclass(frozen=True, slots=True)
class _Scope:
    """A function that has the layer in a variable. ``own``: it is a method of the object whose settings guard what it reads."""

    info: FunctionInfo
    layer: str
    own: bool
    names: Names = ()


def reads_of_layer(index: Index, hook: Hook) -> list[tuple[FunctionInfo, LayerReads | None]]:
    """What methods of a hook's class, each by itself, read of the layer that they are given: names, or patterns of names; None where
    it gets where nobody can follow it. Some of them may be called by loading alone.
    """
    if hook.receiver is None:
        return []
    found: list[tuple[FunctionInfo, LayerReads | None]] = []
    for method, layer in _Walk(index, hook, hook.receiver).given_layers():
        if is_loading_name(method.name) or method.is_abstract:
            continue
        walk = _Walk(index, hook, hook.receiver)
        try:
            walk.enter(method, layer, _NO_GUARDS, own=True)
            found.append((method, {name: frozenset(guards) for name, guards in walk.reads.items()}))
        except (Escaped, RecursionError):
            found.append((method, None))
    return found


def settings_of(index: Index, hook: Hook) -> dict[int, frozenset[Guards]]:
    """Under which settings of its class a hook gets to a statement, by the statement's identity, as far as it can be followed."""
    layer = next((name for name in hook.function.positional if name in LAYER_NAMES), "")
    if hook.receiver is None or not layer:
        return {}
    walk = _Walk(index, hook, hook.receiver, strict=False)
    try:
        walk.enter(hook.function, layer, _NO_GUARDS, own=True)
    except (Escaped, RecursionError):
        return {}
    return {statement: frozenset(found) for statement, found in walk.reached.items()}


class _Walk:
    """Over the hook's class and those that inherit the hook. ``strict``: a call that cannot be followed ends it."""

    def __init__(self, index: Index, hook: Hook, cls: ClassInfo, *, strict: bool = True) -> None:
        self._index = index
        below = (member for member in index.subclasses(cls) if member is not cls)
        self._family = [cls, *(c for c in below if index.method(c, hook.function.name) is hook.function)]
        self._seen: set[tuple[int, str, Guards, Names]] = set()
        self._settled: dict[str, bool] = {}
        self._strict = strict
        self.reads: dict[str, set[Guards]] = {}
        self.reached: dict[int, set[Guards]] = {}

    def given_layers(self) -> Iterator[tuple[FunctionInfo, str]]:
        """The methods, as the class and those below it have them, that are given a layer; first those that the engine calls."""
        names = {name for member in self._family for base in self._index.mro(member) for name in base.methods}
        for name in sorted(names, key=lambda name: (name.startswith("_"), name)):
            for method in self._overrides(name):
                layer = next((p for p in method.positional if p in LAYER_NAMES), "")
                if layer:
                    yield method, layer

    def enter(self, info: FunctionInfo, layer: str, guards: Guards, *, own: bool, names: Names = ()) -> None:
        key = (id(info.node), layer, guards, names)
        if key in self._seen:
            return
        self._seen.add(key)
        if len(self._seen) > _MOST_FUNCTIONS or isinstance(info.node, ast.Lambda):
            raise Escaped
        self._block(info.node.body, _Scope(info, layer, own, names), guards)

    # ---- statements

    def _block(self, body: list[ast.stmt], scope: _Scope, guards: Guards) -> None:
        for node in body:
            self.reached.setdefault(id(node), set()).add(guards)
            if not isinstance(node, ast.If):
                self._statement(node, scope, guards)
                continue
            self._expression(node.test, scope, guards)
            holds = guards | self._implied(node.test, True, scope)
            fails = guards | self._implied(node.test, False, scope)
            self._block(node.body, scope, holds)
            self._block(node.orelse, scope, fails)
            if _leaves(node.body):
                guards = fails
            elif node.orelse and _leaves(node.orelse):
                guards = holds

    def _statement(self, node: ast.stmt, scope: _Scope, guards: Guards) -> None:
        for block in ("body", "orelse", "finalbody"):
            self._block(getattr(node, block, None) or [], scope, guards)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.ExceptHandler, ast.match_case)):
                self._block(child.body, scope, guards)
            elif isinstance(child, (ast.expr, ast.withitem, ast.arguments)):
                self._expression(child, scope, guards)
        target = node.target if isinstance(node, ast.AugAssign) else None
        if isinstance(target, ast.Attribute) and is_name(target.value, scope.layer):
            self._read(target.attr, guards)

    def _implied(self, test: ast.expr, holds: bool, scope: _Scope) -> Guards:
        """What the object's own settings are where the condition holds, or where it fails."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._implied(test.operand, not holds, scope)
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) == holds:
            return frozenset().union(*(self._implied(value, holds, scope) for value in test.values))
        if scope.own and isinstance(test, ast.Attribute) and is_name(test.value, scope.info.self_name):
            return frozenset({(test.attr, holds)}) if self._is_settled(test.attr) else _NO_GUARDS
        return _NO_GUARDS

    def _is_settled(self, name: str) -> bool:
        """Nothing but loading sets the attribute."""
        known = self._settled.get(name)
        if known is None:
            bases = {id(base): base for member in self._family for base in self._index.mro(member)}
            writes = [write for base in bases.values() for write in base.writes.get(name, ())]
            known = self._settled[name] = all(is_loading_name(write.function.name) for write in writes)
        return known

    # ---- expressions

    def _expression(self, root: ast.AST, scope: _Scope, guards: Guards) -> None:
        stack: list[ast.AST] = [root]
        while stack:
            node = stack.pop()
            if isinstance(node, ast.IfExp):
                self._expression(node.body, scope, guards | self._implied(node.test, True, scope))
                self._expression(node.orelse, scope, guards | self._implied(node.test, False, scope))
                stack.append(node.test)
            elif isinstance(node, ast.Attribute) and is_name(node.value, scope.layer):
                if isinstance(node.ctx, ast.Load):
                    self._read(node.attr, guards)
            elif isinstance(node, ast.Call):
                handed = self._handed(node, scope, guards)
                stack += [child for child in ast.iter_child_nodes(node) if id(child) not in handed]
            elif isinstance(node, ast.Compare):
                stack += [child for child in (node.left, *node.comparators) if not is_name(child, scope.layer)]
            elif is_name(node, scope.layer):
                if self._strict:
                    raise Escaped
            else:
                stack += ast.iter_child_nodes(node)

    def _read(self, name: str, guards: Guards) -> None:
        self.reads.setdefault(name, set()).add(guards)

    def _handed(self, node: ast.Call, scope: _Scope, guards: Guards) -> set[int]:
        try:
            return self._call(node, scope, guards)
        except Escaped:
            if self._strict:
                raise
            return set()

    def _call(self, node: ast.Call, scope: _Scope, guards: Guards) -> set[int]:
        """Follows a layer that is handed on; identities of the arguments that were."""
        values = [*node.args, *(keyword.value for keyword in node.keywords)]
        handed = {id(value) for value in values if is_name(value, scope.layer)}
        if not handed:
            return handed
        if (
            isinstance(node.func, ast.Name)
            and node.func.id in (*_NAMING, *_HARMLESS)
            and node.args
            and is_name(node.args[0], scope.layer)
        ):
            if node.func.id in _NAMING:
                for name in spelt(node.args[1], scope.info, scope.names) if len(node.args) > 1 else ():
                    self._read(name, guards)
            return handed
        callees = list(self._callees(node.func, scope))
        if not callees:
            raise Escaped
        for info, bound, own in callees:
            shown = given(info, node, bound, scope.layer)
            known = {**info.defaults, **dict(info.keyword_only), **dict(shown)}
            named = (
                (parameter, name_of(value, scope.names)) for parameter, value in known.items() if value is not None
            )
            names = tuple((parameter, name) for parameter, name in named if name is not None)
            for parameter, value in shown:
                if is_name(value, scope.layer):
                    self.enter(info, parameter, guards, own=own, names=names)
        return handed

    def _callees(self, func: ast.expr, scope: _Scope) -> Iterator[tuple[FunctionInfo, bool, bool]]:
        """The functions that a call may run, whether their first parameter is bound already, and whether to the class's own object."""
        info = scope.info
        if isinstance(func, ast.Attribute) and is_name(func.value, info.self_name) and scope.own:
            found: Iterable[FunctionInfo] = self._overrides(func.attr)
        elif isinstance(func, ast.Attribute) and scope.own and _is_super(func.value) and info.owner is not None:
            bases = {id(b): b for member in self._family for b in _behind(self._index.mro(member), info.owner)}
            found = [base.methods[func.attr] for base in bases.values() if func.attr in base.methods]
        else:
            resolved = self._resolve(func, info)
            if isinstance(resolved, ClassInfo):
                resolved = self._index.method(resolved, "__init__")
                yield from [(resolved, True, False)] if resolved is not None else ()
            elif isinstance(resolved, FunctionInfo):
                yield resolved, False, False
            return
        yield from ((method, not method.is_static, not method.is_static) for method in found)

    def _overrides(self, name: str) -> list[FunctionInfo]:
        found = (self._index.method(member, name) for member in self._family)
        return list({id(method.node): method for method in found if method is not None}.values())

    def _resolve(self, func: ast.expr, info: FunctionInfo) -> object:
        if not isinstance(func, ast.Name):
            return self._index.resolve_expression(info.module, func)
        local = bound_inside(info, func.id)
        if local is None:
            return self._index.resolve(info.module, func.id)
        if isinstance(local, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return self._index.function_info(info.module, local)
        if isinstance(local, ast.ImportFrom):
            names = dict(imported_names(local, info.module.name, info.module.is_package))
            return self._index.imported(names[func.id]) if func.id in names else None
        return None


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and is_name(node.func, "super")


def _behind(order: tuple[ClassInfo, ...], owner: ClassInfo) -> tuple[ClassInfo, ...]:
    return order[order.index(owner) + 1 :] if owner in order else ()


def _leaves(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))
