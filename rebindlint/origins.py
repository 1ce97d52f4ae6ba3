"""Which expressions a value may come from in the end: read off the source, whatever path a run takes.

The execution knows the paths that it took; a fix must be right on the others, too. So names are followed to all their
assignments, and calls into the tree to all that their functions return.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebindlint.execution import torch_table as table
from rebindlint.index.classes import FunctionInfo
from rebindlint.index.modules import FunctionNode, Imported, Module, descend, imported_names

if TYPE_CHECKING:
    from rebindlint.index import Index

__all__ = ["Origins"]

_DEPTH = 6  # calls that are followed into each other
_LIMIT = 400  # expressions that are looked at for one value
_REPEATING = frozenset({"expand", "expand_as", "broadcast_to"})
# methods and attributes whose result shares the memory of their receiver, or may
_PASSED_ON = (table.VIEW | table.RESTRIDE | table.KEEP | table.CAST.keys() | {"data", "to", "type"}) - _REPEATING
# what gives memory an order of its own, which neither shape nor strides tell
_PRIVATE_FORMATS = frozenset({"npu_format_cast", "to_mkldnn"})


class _Names:
    """What the names of one function are bound to, and what it returns: found in one walk."""

    def __init__(self, function: FunctionInfo) -> None:
        self.bound: dict[str, list[tuple[ast.expr | None, int | None]]] = {}
        self.imported: dict[str, Imported] = {}
        module = function.module
        for node in descend(function.node):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self.imported.update(imported_names(node, module.name, module.is_package))
            else:
                for name, value, item in _bindings(node):
                    self.bound.setdefault(name, []).append((value, item))
        self.returned = [node.value or ast.Constant(None) for node in _returns(function.node)]


@dataclass(frozen=True, slots=True, eq=False)
class _Scope:
    """A function, and where it was called from, if it was."""

    function: FunctionInfo
    call: ast.Call | None = None
    caller: _Scope | None = None

    @property
    def depth(self) -> int:
        return 0 if self.caller is None else self.caller.depth + 1


@dataclass(frozen=True, slots=True)
class _Origin:
    """An expression, or a parameter of the function that no call is known for; ``item`` of it, where it is a tuple."""

    node: ast.expr | ast.arg | None  # None: nothing is known about it
    scope: _Scope
    item: int | None = None

    @property
    def key(self) -> tuple[int, int, int | None]:
        return (id(self.node), id(self.scope), self.item)


class Origins:
    """About values in one function. Answers are cautious: what cannot be followed may be anything."""

    def __init__(self, inside: FunctionNode, module: Module, index: Index) -> None:
        self._index = index
        owner = next((cls for cls in index.classes_of(module) if inside in cls.node.body), None)
        self._scope = _Scope(FunctionInfo(inside, module, owner))
        self._names: dict[FunctionInfo, _Names] = {}

    def is_surely_tensor(self, value: ast.expr) -> bool:
        """No path makes it None."""
        return all(_is_tensor(origin) for origin in self._ends(value, None, through=False))

    def may_repeat(self, value: ast.expr, item: int | None = None) -> bool:
        """Several elements (of that item of a tuple) may share one place in memory, which nothing can be copied into."""
        return any(_method(origin.node) in _REPEATING for origin in self._ends(value, item, through=True))

    def may_be_in_private_format(self, value: ast.expr, item: int | None = None) -> bool:
        """Memory of the same shape and strides may be ordered otherwise."""
        return any(_is_reordered(origin.node) for origin in self._ends(value, item, through=True))

    def _ends(self, value: ast.expr, item: int | None, *, through: bool) -> Iterator[_Origin]:
        """What it may be in the end; ``through`` views and casts to what they are made of."""
        stack = [_Origin(value, self._scope, item)]
        seen: dict[tuple[int, int, int | None], _Origin] = {}  # keeps alive what the keys are made of
        while stack:
            origin = stack.pop()
            if origin.key in seen:
                continue
            seen[origin.key] = origin
            further = self._further(origin, through=through) if len(seen) < _LIMIT else None
            if further:
                stack += further
            else:
                yield origin

    def _further(self, origin: _Origin, *, through: bool) -> list[_Origin]:
        """What it may be instead; nothing, where it can be followed no further."""
        node, scope, item = origin.node, origin.scope, origin.item
        if isinstance(node, ast.IfExp):
            return [_Origin(part, scope, item) for part in (node.body, node.orelse)]
        if isinstance(node, ast.BoolOp):
            return [_Origin(part, scope, item) for part in node.values]
        if isinstance(node, ast.Tuple) and item is not None and item < len(node.elts):
            return [_Origin(node.elts[item], scope)]
        if isinstance(node, ast.Name):
            return self._of_name(node.id, scope, item)
        if through and item is None and (inner := _made_of(node)) is not None:
            return [_Origin(inner, scope)]
        if isinstance(node, ast.Call) and scope.depth < _DEPTH:
            return self._returned(node, scope, item)
        return []

    def _returned(self, call: ast.Call, scope: _Scope, item: int | None) -> list[_Origin]:
        """What a function of the tree may return; nothing for other calls."""
        function = self._callee(call.func, scope.function)
        if function is None or function.is_abstract or function.is_generator:
            return []
        inner = _Scope(function, call, scope)
        return [_Origin(value, inner, item) for value in self._names_of(function).returned]

    def _names_of(self, function: FunctionInfo) -> _Names:
        if function not in self._names:
            self._names[function] = _Names(function)
        return self._names[function]

    def _of_name(self, name: str, scope: _Scope, item: int | None) -> list[_Origin]:
        """Everything that the function binds the name to, and what it is called with under that name."""
        found = [
            _Origin(None if of is not None and item is not None else value, scope, item if of is None else of)
            for value, of in self._names_of(scope.function).bound.get(name, ())
        ]
        arguments = scope.function.node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        parameter = next((a for a in every if a.arg == name), None)
        if parameter is not None:
            argument = _argument(parameter, scope)
            if argument is not None and scope.caller is not None:
                found.append(_Origin(argument, scope.caller, item))
            else:
                found.append(_Origin(parameter, scope, item))
        return found

    def _callee(self, func: ast.expr, function: FunctionInfo) -> FunctionInfo | None:
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == function.self_name:
            return self._index.method(function.owner, func.attr) if function.owner is not None else None
        local = self._names_of(function).imported.get(func.id) if isinstance(func, ast.Name) else None
        found = self._index.imported(local) if local else self._index.resolve_expression(function.module, func)
        return found if isinstance(found, FunctionInfo) else None


_SUM = ast.parse("x + y", mode="eval").body  # what an augmented assignment leaves


# ---- what an expression is made of


def _made_of(node: ast.expr | ast.arg | None) -> ast.expr | None:
    """The tensor whose memory it shares: of a view, of a cast that may keep it, of a parameter around it."""
    if isinstance(node, ast.Attribute) and node.attr in _PASSED_ON:
        return node.value
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr in _PASSED_ON and not _is_reordered(node):
        return node.func.value
    if _called(node) == "Parameter":
        return node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "data"), None)
    return None


def _called(node: ast.expr | ast.arg | None) -> str:
    """The last part of the name of what is called."""
    func = node.func if isinstance(node, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _method(node: ast.expr | ast.arg | None) -> str:
    return _called(node) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""


def _is_reordered(node: ast.expr | ast.arg | None) -> bool:
    return isinstance(node, ast.Call) and (
        _called(node) in _PRIVATE_FORMATS or any(keyword.arg == "memory_format" for keyword in node.keywords)
    )


def _is_tensor(origin: _Origin) -> bool:
    """Arithmetic, a parameter, what a function of torch returns, a method that only tensors have, an argument that is declared one."""
    node = origin.node
    if isinstance(node, ast.Call) and _root(node.func) in ("torch", "F"):
        return True
    if origin.item is not None or node is None:
        return False
    if isinstance(node, ast.arg):
        return node.annotation is not None and _is_tensor_type(node.annotation)
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        return True
    if isinstance(node, ast.Attribute):
        return node.attr in _PASSED_ON
    return _called(node).endswith("Parameter") or _gives_a_tensor(_method(node))


def _root(func: ast.expr) -> str:
    """``a`` of ``a.b.c``; nothing for a bare name."""
    root = func
    while isinstance(root, ast.Attribute):
        root = root.value
    return root.id if isinstance(root, ast.Name) and root is not func else ""


def _gives_a_tensor(method: str) -> bool:
    return table.is_tensor_name(method) and method not in table.HOST_METHODS | table.SCALAR


def _is_tensor_type(annotation: ast.expr) -> bool:
    return ast.unparse(annotation).rpartition(".")[2].strip("'\"") in ("Tensor", "Parameter")


# ---- names


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr | None, int | None]]:
    """The names that a statement binds, with the value of each, or the item of it that is unpacked."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value, None
            elif isinstance(target, (ast.Tuple, ast.List)):
                yield from ((e.id, node.value, i) for i, e in enumerate(target.elts) if isinstance(e, ast.Name))
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr, ast.AugAssign)):
        if isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, _SUM if isinstance(node, ast.AugAssign) else node.value, None
    elif isinstance(node, (ast.For, ast.comprehension, ast.withitem)):
        bound = node.optional_vars if isinstance(node, ast.withitem) else node.target
        yield from ((n.id, None, None) for n in descend(bound) if isinstance(n, ast.Name)) if bound is not None else ()


def _argument(parameter: ast.arg, scope: _Scope) -> ast.expr | None:
    """What the call hands over for it."""
    call, function = scope.call, scope.function
    if call is None:
        return None
    for keyword in call.keywords:
        if keyword.arg == parameter.arg:
            return keyword.value
    names = list(function.positional)
    if function.self_name and isinstance(call.func, ast.Attribute):
        names = names[1:]
    if parameter.arg in names and names.index(parameter.arg) < len(call.args):
        given = call.args[names.index(parameter.arg)]
        return None if any(isinstance(a, ast.Starred) for a in call.args) else given
    return None


def _returns(function: ast.AST) -> list[ast.Return]:
    """Its own, not those of functions inside it."""
    found: list[ast.Return] = []
    stack = list(ast.iter_child_nodes(function))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Return):
            found.append(node)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
            stack += ast.iter_child_nodes(node)
    return found
