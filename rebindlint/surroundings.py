"""What else a file does with an attribute that a statement binds, as far as it matters to a fix of that statement."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rebindlint.imports import statements_of
from rebindlint.index.modules import FunctionNode, Module, descend

if TYPE_CHECKING:
    from rebindlint.index import Index

__all__ = ["bound_elsewhere", "is_deleted_first", "is_filled_later", "known_present", "plainly_bound", "starts_as_none"]


def _stores(tree: ast.AST) -> Iterator[ast.Attribute]:
    return (n for n in descend(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))


def bound_elsewhere(inside: FunctionNode, node: ast.stmt, name: str) -> bool:
    """Another statement of the function binds the same attribute: one of them alone cannot be changed."""
    last = node.end_lineno or node.lineno
    return any(store.attr == name and not node.lineno <= store.lineno <= last for store in _stores(inside))


def is_deleted_first(inside: FunctionNode, node: ast.stmt) -> bool:
    """The function deletes the attribute before it binds it again."""
    bound = set(_targets(node))
    return any(
        target in bound
        for earlier in descend(inside)
        if getattr(earlier, "lineno", node.lineno) < node.lineno
        for target in _deleted(earlier)
    )


_Target = tuple[str, str]  # receiver and name, as source: the name quoted, or computed


def _targets(node: ast.stmt) -> Iterator[_Target]:
    yield from ((ast.unparse(store.value), repr(store.attr)) for store in _stores(node))
    call = node.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    if call is not None and len(call.args) == 3:
        yield ast.unparse(call.args[0]), ast.unparse(call.args[1])
    elif call is not None and len(call.args) == 2 and isinstance(call.func, ast.Attribute):
        yield ast.unparse(call.func.value), ast.unparse(call.args[0])


def _deleted(node: ast.AST) -> Iterator[_Target]:
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Del):
        yield ast.unparse(node.value), repr(node.attr)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "delattr":
        yield ast.unparse(node.args[0]), ast.unparse(node.args[1])


def plainly_bound(tree: ast.Module, node: ast.stmt) -> Iterator[str]:
    """Attributes that other statements of the file bind to something that is neither None nor a parameter."""
    for statement in statements_of(tree):
        if statement is node or not isinstance(statement, ast.Assign | ast.AnnAssign):
            continue
        value = statement.value
        if value is None or (isinstance(value, ast.Constant) and value.value is None) or _is_parameter(value):
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            yield from (store.attr for store in _stores(target))


def _is_parameter(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func).endswith("Parameter")


def is_filled_later(inside: FunctionNode, node: ast.stmt) -> bool:
    """What the value shares memory with is written to afterwards: what was copied before that stays as it was."""
    value = getattr(node, "value", None)
    if isinstance(node, ast.Expr) and isinstance(value, ast.Call) and value.args:
        value = value.args[-1]  # ``setattr(layer, name, value)``
    shared = set(_shared(value)) if isinstance(value, ast.expr) else set()
    last = node.end_lineno or node.lineno
    after = [later for later in descend(inside) if getattr(later, "lineno", 0) > last]
    if any(_memory(target) in shared for later in after for target in _written(later)):
        return True
    name = value.id if isinstance(value, ast.Name) else ""
    return any(isinstance(given, ast.Name) and given.id == name for later in after for given in _handed_over(later))


def _written(node: ast.AST) -> Iterator[ast.expr]:
    """``x.add_(...)``, ``f(..., out=x)``, ``x[i] = ...``, ``x += ...``"""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_") and not node.func.attr.endswith("__"):
            yield node.func.value
        yield from (keyword.value for keyword in node.keywords if keyword.arg == "out")
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        yield node.value
    elif isinstance(node, ast.AugAssign):
        yield node.target


def _handed_over(node: ast.AST) -> Iterator[ast.expr]:
    """``f(x)`` that is called for nothing but what it does: perhaps it writes into what it is given."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not _binds(node.value.func):
        yield from node.value.args


_BINDING = ("set", "register", "replace", "copy_or", "add_", "append")


def _binds(func: ast.expr) -> bool:
    """By its name it keeps what it is given."""
    name = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
    return name.lstrip("_").startswith(_BINDING)


def _shared(value: ast.expr) -> Iterator[str]:
    """What the value may be, or be a view of: itself, receivers and arguments of calls, arms of a choice, items of a tuple."""
    if isinstance(value, ast.Name | ast.Attribute | ast.Subscript):
        yield _memory(value)
    elif isinstance(value, ast.Call):
        inner = [*value.args, *([value.func.value] if isinstance(value.func, ast.Attribute) else [])]
        for part in inner:
            yield from _shared(part)
    elif isinstance(value, ast.IfExp):
        yield from (*_shared(value.body), *_shared(value.orelse))
    elif isinstance(value, ast.Tuple | ast.List):
        for item in value.elts:
            yield from _shared(item)


def _memory(node: ast.expr) -> str:
    """``x`` of ``x.data``, ``x[0]``, ``x.view(-1)`` and ``x`` itself: the name by which the memory is known."""
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr in ("data", "T", "mT")):
            node = node.value
        else:
            return ast.unparse(node)


def known_present(inside: FunctionNode, node: ast.stmt) -> Iterator[str]:
    """Names that an ``if`` around the statement, or an ``assert`` in front of it, found not to be None, and that are bound nowhere after that."""
    last = node.end_lineno or node.lineno
    for test in descend(inside):
        if isinstance(test, ast.If):
            around = test.body[0].lineno <= node.lineno and last <= (test.body[-1].end_lineno or 0)
        else:
            around = isinstance(test, ast.Assert) and test in inside.body and test.lineno < node.lineno
        if around and isinstance(test, ast.If | ast.Assert):
            later = {n.id for n in descend(inside) if isinstance(n, ast.Name) and _is_bound_between(n, test, node)}
            yield from (name for name in _present(test.test) if name not in later)


def _is_bound_between(name: ast.Name, test: ast.stmt, node: ast.stmt) -> bool:
    return isinstance(name.ctx, ast.Store) and test.lineno <= name.lineno < node.lineno


def _present(test: ast.expr) -> Iterator[str]:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for part in test.values:
            yield from _present(part)
    elif isinstance(test, ast.Compare):
        name, _, rest = ast.unparse(test).partition(" ")
        if rest == "is not None" and name.isidentifier():
            yield name


def starts_as_none(index: Index, module: Module, inside: FunctionNode, receiver: str, name: str) -> bool:
    """The class of the method ``inside``, or one of its bases, sets the attribute to None, in its body or whenever it is constructed."""
    owner = next((cls for cls in index.classes_of(module) if inside in cls.node.body), None)
    if owner is None or not inside.args.args or receiver != inside.args.args[0].arg:
        return False
    values = [base.attributes.get(name) for base in index.mro(owner)]
    values += [
        write.value
        for base in index.mro(owner)
        for write in base.writes.get(name, ())
        if write.function.name in ("__init__", "__post_init__") and not write.conditional
    ]
    return any(isinstance(value, ast.Constant) and value.value is None for value in values)
