"""What constructors assign: expressions as they are seen from inside the constructor, whose calls are not entered."""

from __future__ import annotations

import ast

from rebindlint.execution.allocations import ALLOCATORS, all_allocate, allocated
from rebindlint.execution.annotations import annotated
from rebindlint.execution.constructed import Constructed, literal_argument
from rebindlint.execution.constructor_writes import all_writes, runs_before_hooks
from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.values import ClassValue, Const, DictValue, ListValue, Obj, Tensor, Unknown, Value
from rebindlint.index.classes import ClassInfo, FunctionInfo, InitWrite
from rebindlint.index.modules import Module

__all__ = ["assigned_value"]

_NONE = ast.Constant(None)


def assigned_value(m: Interpreter, write: InitWrite, obj: Obj, label: str) -> Value:
    """The assigned expression, seen from inside the constructor; calls are not entered."""
    node = write.value
    module = write.function.module
    if node is None:
        return (
            annotated(m, write.annotation, module, label, None)
            if write.annotation is not None
            else Unknown(label, (obj, label.rsplit(".", 1)[1]))
        )
    value = _expression(m, node, write, obj, label)
    if isinstance(value, Unknown) and write.annotation is not None and value.label == label:
        return annotated(m, write.annotation, module, label, node)
    return value


def _expression(m: Interpreter, node: ast.expr, write: InitWrite, obj: Obj, label: str) -> Value:
    home = (obj, label.rsplit(".", 1)[1])
    module = write.function.module
    if isinstance(node, ast.Constant):
        return Const(node.value)
    if isinstance(node, ast.Name):
        return _name(m, node.id, write, obj, label)
    if isinstance(node, ast.Attribute):
        return _attribute_chain(m, node, write, obj, label)
    if isinstance(node, ast.IfExp):
        branch = node.body if _holds(m, node.test, write, obj, label) else node.orelse
        return _expression(m, branch, write, obj, label)
    if isinstance(node, ast.Call):
        return _call(m, node, module, obj, label, write)
    if isinstance(node, (ast.List, ast.Tuple)) and all(isinstance(item, ast.Constant) for item in node.elts):
        return ListValue([Const(item.value) for item in node.elts if isinstance(item, ast.Constant)])
    if isinstance(node, (ast.List, ast.Tuple)) and all(isinstance(i, (ast.Constant, ast.Name)) for i in node.elts):
        folded = [_expression(m, item, write, obj, f"{label}[{i}]") for i, item in enumerate(node.elts)]
        if all(isinstance(item, Const) for item in folded):  # constants of the module
            return ListValue(folded)
    if isinstance(node, (ast.List, ast.Tuple)) and node.elts and all_allocate(m, node.elts, module):
        return ListValue([_expression(m, item, write, obj, f"{label}[{i}]") for i, item in enumerate(node.elts)])
    if isinstance(node, ast.Dict) and not node.keys:
        return DictValue({}, label)
    if isinstance(node, ast.Dict) and all(isinstance(k, ast.Constant) for k in node.keys):
        items = {k.value: v for k, v in zip(node.keys, node.values, strict=True) if isinstance(k, ast.Constant)}
        if all_allocate(m, items.values(), module):
            return DictValue({k: _expression(m, v, write, obj, f"{label}[{k!r}]") for k, v in items.items()}, label)
    if isinstance(node, ast.Lambda):
        return Unknown(f"<lambda {label}>")
    if isinstance(node, ast.Compare) and (decided := _decided(m, node, write, obj, label)) is not None:
        return Const(decided)
    return Unknown(label, home)


def _name(m: Interpreter, name: str, write: InitWrite, obj: Obj, label: str) -> Value:
    arguments = write.function.node.args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        if argument.arg == name:
            given = _handed_up(m, write.function, name, obj, label.rpartition(".")[2])
            if given is not None:
                return _expression(m, given.value or _NONE, given, obj, label)
            if argument.annotation is None:
                return Unknown(label, (obj, label.rsplit(".", 1)[1]))
            return annotated(
                m, argument.annotation, write.function.module, label, argument, optional=not write.conditional
            )
    local = _local(write.function, name)
    if local is not None:
        return _expression(m, local, InitWrite(local, None, write.conditional, write.function), obj, label)
    found = m.index.resolve(write.function.module, name)
    if isinstance(found, ClassInfo):
        return ClassValue(found)
    if isinstance(found, tuple) and isinstance(found[1].value, ast.Constant):
        return Const(found[1].value.value)
    return Unknown(label, (obj, label.rsplit(".", 1)[1]))


def _handed_up(m: Interpreter, function: FunctionInfo, name: str, obj: Obj, kept_as: str) -> InitWrite | None:
    """What the object's own class hands to this constructor of a base for a parameter, where it is a literal.

    Where the call that made the object is known, what that hands to the constructor, unless other methods set the attribute as well.
    """
    if (
        isinstance(obj, Constructed)
        and obj.cls is not None
        and all(runs_before_hooks(write.function) for write in all_writes(m, obj.cls, kept_as))
    ):
        literal_node = literal_argument(m, obj, function, name)
        if literal_node is not None:
            return InitWrite(literal_node, None, False, function)
    if obj.cls is None or not obj.exact or function.name != "__init__" or function.owner in (None, obj.cls):
        return None
    own = obj.cls.methods.get("__init__")
    if own is not None:
        for node in own.super_calls:
            by_name = {k.arg: k.value for k in node.keywords}
            by_place = dict(zip(function.positional[1:], node.args, strict=False))
            given = by_name.get(name, by_place.get(name))
            literal = isinstance(given, ast.Constant) or (
                isinstance(given, (ast.List, ast.Tuple)) and all(isinstance(item, ast.Constant) for item in given.elts)
            )
            return InitWrite(given, None, False, own) if literal else None
    return None


def _holds(m: Interpreter, test: ast.expr, write: InitWrite, obj: Obj, label: str) -> bool:
    """A condition inside a constructor's expression: decided where a literal decides it, else asked."""
    decided = _decided(m, test, write, obj, label)
    return decided if decided is not None else bool(m.ask(f"init {label}?", test))


def _decided(m: Interpreter, test: ast.expr, write: InitWrite, obj: Obj, label: str) -> bool | None:
    """``x is None`` and ``self.flag`` where the constructor's own literals tell."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
        right = test.comparators[0]
        if isinstance(right, ast.Constant) and right.value is None:
            left = _expression(m, test.left, write, obj, f"{label}.test")
            if isinstance(left, (Const, ListValue, Tensor, Obj)):
                return (isinstance(left, Const) and left.value is None) == isinstance(test.ops[0], ast.Is)
    elif isinstance(test, (ast.Attribute, ast.Name)):
        value = _expression(m, test, write, obj, f"{label}.test")
        if isinstance(value, Const) and isinstance(value.value, bool):
            return value.value
    return None


def _local(function: FunctionInfo, name: str) -> ast.expr | None:
    found = None
    for node in function.assignments:
        if any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            if found is not None:
                return None
            found = node.value
    return found if not isinstance(found, ast.Name) else None


def _attribute_chain(m: Interpreter, node: ast.Attribute, write: InitWrite, obj: Obj, label: str) -> Value:
    from rebindlint.execution.attributes import read

    if isinstance(node.value, ast.Name) and node.value.id == write.function.self_name:
        return read(m, obj, node.attr, node)
    found = m.index.resolve_expression(write.function.module, node)
    if isinstance(found, ClassInfo):
        return ClassValue(found)
    home = m.index.resolve_expression(write.function.module, node.value)
    if isinstance(home, ClassInfo) and m.index.is_enumeration(home) and node.attr in home.attributes:
        return Const(("enum", home.name, node.attr))
    return Unknown(label, (obj, label.rsplit(".", 1)[1]))


def _call(m: Interpreter, node: ast.Call, module: Module, obj: Obj, label: str, write: InitWrite) -> Value:
    found = m.index.resolve_expression(module, node.func)
    if isinstance(found, ClassInfo):
        if m.index.is_parameter_class(found):
            return m.weight(label, is_parameter=True)
        if m.index.is_enumeration(found):
            return Unknown(label)
        return Constructed(label, found, node, write.function, obj, is_module=m.index.is_module(found))
    if isinstance(found, FunctionInfo) and not isinstance(found.node, ast.Lambda) and found.node.returns is not None:
        return annotated(m, found.node.returns, found.module, label, node)
    if (
        isinstance(node.func, ast.Name)
        and node.func.id == "dict"
        and found is None
        and not (node.args or node.keywords)
    ):
        return DictValue({}, label)
    dotted = str(found) if isinstance(found, str) else ""
    last = dotted.rpartition(".")[2]
    if last in ("Parameter", "Buffer"):
        return m.weight(label, is_parameter=True)
    if dotted.startswith("torch.") and last in ALLOCATORS:
        return allocated(m, node, write, label, last)
    return Unknown(label, (obj, label.rsplit(".", 1)[1]))
