"""Functions that code puts in the place of an object's hook: ``method.process_weights_after_loading = inner``."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rebindlint.index.bindings import own_nodes
from rebindlint.index.classes import ClassInfo, FunctionInfo
from rebindlint.index.modules import FunctionNode, Module, descend

if TYPE_CHECKING:
    from rebindlint.index.tree import Index

__all__ = ["Installed", "installed_hooks"]

_MAX_STEPS = 4  # names, partials and factories between the assignment and the function


@dataclass(frozen=True, slots=True, eq=False)
class Installed:
    """``function`` runs as a hook; ``receiver`` is the class of what it gets as its first argument, if that is known."""

    function: FunctionInfo
    receiver: ClassInfo | None


@dataclass(frozen=True, slots=True, eq=False)
class _Scope:
    """Where an expression stands: the functions around it, outermost first, and the class that the first is a method of."""

    module: Module
    functions: tuple[FunctionNode, ...] = ()
    owner: ClassInfo | None = None

    @property
    def self_name(self) -> str:
        """The name that the method around it calls its object."""
        if self.owner is None or not self.functions:
            return ""
        method = self.owner.methods.get(self.functions[0].name)
        return method.self_name if method is not None and method.node is self.functions[0] else ""


def installed_hooks(index: Index, names: Collection[str]) -> Iterator[Installed]:
    """Every function of the tree that is assigned to an attribute of one of these names."""
    either = "|".join(re.escape(name) for name in sorted(names))
    assigned = re.compile(
        rf"\.({either})[ \t]*(?::[^=\n]*)?=[^=]|setattr\([^\n]*[\"']({either})[\"']".encode(), re.ASCII
    )
    needles = [name.encode() for name in sorted(names)]
    for module_name, source in sorted(index.sources.items()):
        raw = index.bytes.get(source.shown, b"")
        if not any(needle in raw for needle in needles) or not assigned.search(raw):
            continue
        module = index.module(module_name)
        for scope, target, value in _assignments(index, module, names) if module is not None else ():
            yield from _functions(index, scope, target, value)


def _assignments(index: Index, module: Module, names: Collection[str]) -> Iterator[tuple[_Scope, ast.expr, ast.expr]]:
    """What is assigned, on which object, and where."""
    stack: list[tuple[ast.AST, _Scope, ast.ClassDef | None]] = [(module.tree, _Scope(module), None)]
    while stack:
        node, scope, cls = stack.pop()
        if isinstance(node, ast.ClassDef):
            cls = node
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            owner = index.class_info(module, cls) if cls is not None and not scope.functions else scope.owner
            scope = replace(scope, functions=(*scope.functions, node), owner=owner)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Attribute) and target.attr in names:
                    yield scope, target.value, node.value
        elif isinstance(node, ast.Call) and _sets(node, names):
            yield scope, node.args[0], node.args[2]
        stack.extend((child, scope, cls) for child in ast.iter_child_nodes(node))


def _sets(node: ast.Call, names: Collection[str]) -> bool:
    """``setattr(x, "name", f)``."""
    name = node.args[1] if len(node.args) == 3 and isinstance(node.func, ast.Name) else None
    return isinstance(name, ast.Constant) and name.value in names and getattr(node.func, "id", "") == "setattr"


def _functions(index: Index, scope: _Scope, target: ast.expr, value: ast.expr) -> Iterator[Installed]:
    found = _function(index, scope, value, _MAX_STEPS)
    if found is None:
        return
    cls = index.resolve_expression(scope.module, target)
    if isinstance(cls, ClassInfo) and found.receiver is None:  # a function in a class body becomes a method
        found = replace(found, receiver=cls)
    yield found


def _function(index: Index, scope: _Scope, value: ast.expr, steps: int) -> Installed | None:
    """The function that an expression gives, through local names, partials, bound methods, decorators and factories."""
    if steps <= 0:
        return None
    if isinstance(value, ast.Lambda):
        return _in_scope(index, scope, value)
    if isinstance(value, ast.Name):
        return _named(index, scope, value.id, steps)
    if isinstance(value, ast.Attribute):
        return _attribute(index, scope, value)
    if isinstance(value, ast.Call):
        return _made(index, scope, value, steps)
    return None


def _named(index: Index, scope: _Scope, name: str, steps: int) -> Installed | None:
    for depth in range(len(scope.functions), 0, -1):
        inside = replace(scope, functions=scope.functions[:depth])
        if name in _arguments(scope.functions[depth - 1]):
            return None  # the caller's
        for node in own_nodes(scope.functions[depth - 1]):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
                return _in_scope(index, inside, node)
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
                return _function(index, inside, node.value, steps - 1)
    found = index.resolve(scope.module, name)
    if isinstance(found, FunctionInfo):
        return Installed(found, None)
    if isinstance(found, tuple):
        home, assigned = found
        return _function(index, _Scope(home), assigned.value, steps - 1)
    return None


def _attribute(index: Index, scope: _Scope, value: ast.Attribute) -> Installed | None:
    """A method of the object around it, or a function of a module."""
    if isinstance(value.value, ast.Name) and value.value.id == scope.self_name and scope.owner is not None:
        method = index.method(scope.owner, value.attr)
        return Installed(method, None if method.is_static else scope.owner) if method is not None else None
    found = index.resolve_expression(scope.module, value)
    return Installed(found, None) if isinstance(found, FunctionInfo) else None


def _made(index: Index, scope: _Scope, value: ast.Call, steps: int) -> Installed | None:
    called = value.func
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    if name == "partial" and value.args:
        return _function(index, scope, value.args[0], steps - 1)
    if name == "MethodType" and len(value.args) == 2:
        return _bound(index, scope, value.args[0], value.args[1], steps)
    if name == "__get__" and isinstance(called, ast.Attribute) and value.args:
        return _bound(index, scope, called.value, value.args[0], steps)
    if isinstance(called, ast.Call) and len(value.args) == 1 and not value.keywords:  # decorator(...)(function)
        return _function(index, scope, value.args[0], steps - 1)
    factory = _function(index, scope, called, steps - 1)
    if factory is None or isinstance(factory.function.node, ast.Lambda):
        return None
    inside = _Scope(factory.function.module, (factory.function.node,), factory.function.owner)
    given = [n.value for n in own_nodes(factory.function.node) if isinstance(n, ast.Return) and n.value is not None]
    return _function(index, inside, given[0], steps - 1) if len(given) == 1 else None


def _bound(index: Index, scope: _Scope, function: ast.expr, obj: ast.expr, steps: int) -> Installed | None:
    found = _function(index, scope, function, steps - 1)
    return replace(found, receiver=_class_of(index, scope, obj)) if found is not None else None


def _class_of(index: Index, scope: _Scope, obj: ast.expr) -> ClassInfo | None:
    """The class of an object by what the functions around it say: it is their own, or an annotated argument."""
    if not isinstance(obj, ast.Name):
        return None
    if obj.id == scope.self_name and scope.owner is not None:
        return scope.owner
    for function in reversed(scope.functions):
        annotation = _arguments(function).get(obj.id)
        if annotation is not None:
            found = index.resolve_expression(scope.module, annotation)
            return found if isinstance(found, ClassInfo) else None
    return None


def _in_scope(index: Index, scope: _Scope, node: FunctionNode | ast.Lambda) -> Installed:
    """A function that stands inside others. Where it uses the object of the method around it, it is as good as a method of that."""
    name = scope.self_name
    uses = any(isinstance(n, ast.Name) and n.id == name for n in descend(node)) if name else False
    if not uses or name in _arguments(node) or isinstance(node, ast.Lambda) or scope.owner is None:
        return Installed(index.function_info(scope.module, node), None)
    key = ("with its object", id(node))
    method = index.pure.get(key)
    if method is None:
        method = index.pure[key] = _with_first(node, name)
    return Installed(index.function_info(scope.module, method), scope.owner)


def _arguments(node: FunctionNode | ast.Lambda) -> dict[str, ast.expr | None]:
    """Names of the parameters, with their annotations."""
    return {a.arg: a.annotation for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]}


def _with_first(node: FunctionNode, name: str) -> FunctionNode:
    """The function with one more argument in front; the statements are the same."""
    spec = node.args
    first = ast.copy_location(ast.arg(name), node)
    arguments = ast.arguments(
        posonlyargs=[first, *spec.posonlyargs] if spec.posonlyargs else [],
        args=spec.args if spec.posonlyargs else [first, *spec.args],
        vararg=spec.vararg,
        kwonlyargs=spec.kwonlyargs,
        kw_defaults=spec.kw_defaults,
        kwarg=spec.kwarg,
        defaults=spec.defaults,
    )
    made = type(node)(
        name=node.name, args=arguments, body=node.body, decorator_list=node.decorator_list, returns=node.returns
    )
    return ast.copy_location(made, node)
