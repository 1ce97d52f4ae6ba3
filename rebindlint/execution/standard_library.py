"""Functions of the standard library."""

from __future__ import annotations

import ast

from rebindlint.execution import attribute_writes, promotion, tensors
from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.naming import attribute_name
from rebindlint.execution.values import (
    NOTHING,
    DictValue,
    Obj,
    Partial,
    Unknown,
    Value,
    is_stable,
    label_of,
)

__all__ = ["call"]


def call(m: Interpreter, label: str, args: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value | None:
    """The result of a function that moves values around; None for every other."""
    last = label.rpartition(".")[2]
    if last in ("partial", "partialmethod") and args:
        return Partial(args[0], args[1:], keywords)
    if label in ("copy.copy", "copy.deepcopy") and args:
        tensor = promotion.as_tensor(m, args[0]) if not isinstance(args[0], Obj) else None
        if isinstance(args[0], Obj):
            return _copied_object(m, args[0])
        if tensor is None:
            return args[0]
        if last == "deepcopy":
            return tensors.method(m, tensor, "clone", [], {}, node)
        shallow = tensor.alias()
        shallow.is_parameter, shallow.type_name, shallow.attributes = (
            tensor.is_parameter,
            tensor.type_name,
            dict(tensor.attributes),
        )
        return shallow
    if last == "__setattr__" and len(args) >= 3:
        attribute_writes.write(m, args[-3], attribute_name(args[-2]), args[-1])
        return NOTHING
    if last in ("cast", "wraps", "ensure_future") and args:
        return args[-1]
    if last in ("tqdm", "chain", "track", "islice") and args:
        return args[0]
    if last in ("WeakKeyDictionary", "OrderedDict", "defaultdict", "WeakValueDictionary"):
        return DictValue()
    if last == "SimpleNamespace":
        obj = Obj("SimpleNamespace()", born=max(m.run, 1))
        obj.attributes.update(keywords)
        return obj
    if label.startswith(("logging.", "warnings.", "time.", "os.", "gc.", "math.", "json.", "re.")):
        inner = ",".join(label_of(a) for a in args)
        return Unknown(f"{label}({inner})") if is_stable(inner) else Unknown(f"{label}()")
    return None


def _copied_object(m: Interpreter, obj: Obj) -> Obj:
    """A shallow copy: other attributes from now on, the same tensors in them."""
    found = Obj(f"{obj.label}~", obj.cls, is_module=obj.is_module, exact=obj.exact, born=max(m.run, 1))
    found.attributes, found.registered, found.initial = dict(obj.attributes), set(obj.registered), dict(obj.initial)
    m.keep.append(found)
    return found
