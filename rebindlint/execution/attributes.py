"""Reading attributes of symbolic values, and asking for them; writing and deleting stand in ``attribute_writes``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from rebindlint.execution import constants, initial, tensors
from rebindlint.execution.attribute_writes import bind_computed, delete, may_be_computed, note_slot, write
from rebindlint.execution.constructor_writes import is_computed_number, is_set_below, is_written
from rebindlint.execution.interpreter import Interpreter, Raised
from rebindlint.execution.naming import names_weight
from rebindlint.execution.promotion import as_object, as_tensor, maybe_tensor, turned_tensor
from rebindlint.execution.values import (
    DELETED,
    BoundMethod,
    ClassValue,
    Const,
    DictValue,
    External,
    Function,
    ListValue,
    ModuleValue,
    Obj,
    Partial,
    Scalar,
    SuperValue,
    Tensor,
    Unknown,
    Value,
    is_stable,
    label_of,
)
from rebindlint.index.classes import ClassInfo, FunctionInfo
from rebindlint.index.lazy_text import numbers_of_weights
from rebindlint.index.modules import Module
from rebindlint.index.tree import External as ExternalName

if TYPE_CHECKING:
    from rebindlint.index.tree import Resolved

__all__ = [
    "as_tensor",
    "delete",
    "has",
    "maybe_tensor",
    "note_slot",
    "read",
    "resolved_value",
    "write",
]


def resolved_value(m: Interpreter, found: Resolved | None, module: Module, name: str) -> Value:
    """The value of a name resolved by the index."""
    if isinstance(found, FunctionInfo):
        return Function(found)
    if isinstance(found, ClassInfo):
        return ClassValue(found)
    if isinstance(found, Module):
        return ModuleValue(found)
    if isinstance(found, ExternalName):
        return External(str(found))
    if found is None:
        return Unknown(name)
    home, assigned = found
    known = m.globals.get((home.name, name))
    if known is None:
        m.globals[(home.name, name)] = Unknown(f"{home.name}.{name}")  # recursion ends here
        known = constants.module_value(m, home, assigned, name)
        m.globals[(home.name, name)] = known
    return known


# ---- reading


def read(m: Interpreter, value: Value, name: str, node: ast.AST) -> Value:
    """``value.name``; raises what Python would raise only for attributes known to be deleted or absent."""
    m.tick()
    if isinstance(value, Obj):
        tensor = turned_tensor(m, value, name)
        if tensor is not None:
            return tensors.attribute(m, tensor, name, node)
        return _read_object(m, value, name, node)
    if isinstance(value, Tensor):
        return tensors.attribute(m, value, name, node)
    if isinstance(value, Unknown):
        return _read_unknown(m, value, name, node)
    if isinstance(value, ModuleValue):
        return _read_module(m, value.module, name)
    if isinstance(value, External):
        return _read_external(m, value, name)
    if isinstance(value, ClassValue):
        return _read_class(m, value.info, name, node)
    if isinstance(value, SuperValue):
        return _read_super(m, value, name, node)
    if isinstance(value, Const):
        return _read_constant(value, name)
    if isinstance(value, ListValue) and name in ("values", "indices") and len(value.items) == 2:
        return value.items[name == "indices"]  # what torch's reductions over a dimension give
    if isinstance(value, (ListValue, DictValue, Scalar)):
        return BoundMethod(value, name)
    if isinstance(value, Function) and name == "__wrapped__":
        return value
    if isinstance(value, BoundMethod) and name == "__self__":
        return value.receiver
    if isinstance(value, Partial):
        return {"func": value.function}.get(name, Unknown(f"partial.{name}"))
    return Unknown(f"{label_of(value)}.{name}")


def _read_object(m: Interpreter, obj: Obj, name: str, node: ast.AST) -> Value:
    found = obj.attributes.get(name)
    if found is DELETED and m.computed.get(id(obj), (0, None))[0] == m.run and names_weight(name):
        return bind_computed(m, obj, name)
    if found is DELETED:
        if (m.run == 1 and not m.expects_absence) or (id(obj), name) in m.revived:
            # the first run did not fail there, so something bound it again where we could not look
            m.revived.add((id(obj), name))
            obj.attributes[name] = found = Unknown(f"{obj.label}.{name}'", (obj, name))
            return found
        m.oracle.missing = m.deleted.get(name, ())
        raise Raised(f"no attribute {name}")
    if found is not None:
        return found
    if m.lazy and not is_computed_number(m, obj, name):
        number = _number_of_weights(m, obj.label, name)
        if number is not None:
            return number
    if name == "__dict__":
        return DictValue(obj.attributes, f"{obj.label}.__dict__", closed=False, owner=obj)  # type: ignore[arg-type]
    if name in ("_parameters", "_buffers", "_modules") and obj.is_module:
        return DictValue(obj.attributes, f"{obj.label}.{name}", closed=False, owner=obj)  # type: ignore[arg-type]
    if name == "__class__" and obj.cls is not None:
        return ClassValue(obj.cls)
    member = _class_member(m, obj, name, node)
    if member is not None:
        return member
    if obj.is_module and name in initial.MODULE_METHODS:
        return BoundMethod(obj, name)
    if may_be_computed(m, obj, name):
        return bind_computed(m, obj, name)
    if m.expects_absence and m.run and not has(m, obj, name, node):
        raise Raised
    before = len(m.oracle.consulted)
    value = initial.attribute(m, obj, name, node)
    if len(m.oracle.consulted) > before:
        m.governed.setdefault(name, tuple(m.oracle.consulted[before:]))
    return value


def _class_member(m: Interpreter, obj: Obj, name: str, node: ast.AST) -> Value | None:
    found = m.index.member(obj.cls, name) if obj.cls is not None else None
    if found is None or obj.cls is None:
        return None
    cls, method = found
    if method is not None:
        return _bind(m, method, obj, node)
    if is_written(m, obj.cls, name) or (not obj.exact and is_set_below(m, obj.cls, name)):
        return None
    if cls.is_dataclass and name in cls.annotations and not obj.born:
        return None  # the default of a field, which the object need not have
    return _class_attribute(m, cls, name, node)


def _bind(m: Interpreter, method: FunctionInfo, receiver: Value, node: ast.AST) -> Value:
    if method.is_property:
        from rebindlint.execution.calls import enter

        return enter(m, Function(method, None, receiver), [], {}, node)
    if method.is_static:
        return Function(method)
    if method.is_classmethod and isinstance(receiver, Obj) and receiver.cls is not None:
        return Function(method, None, ClassValue(receiver.cls))
    return Function(method, None, receiver)


def _class_attribute(m: Interpreter, cls: ClassInfo, name: str, node: ast.AST) -> Value:
    key = (id(cls), name)
    known = m.class_attributes.get(key)
    if known is None:
        m.class_attributes[key] = Unknown(f"{cls.name}.{name}")
        known = constants.class_value(m, cls, name, node)
        m.class_attributes[key] = known
    return known


def _read_unknown(m: Interpreter, value: Unknown, name: str, node: ast.AST) -> Value:
    if name == "is_meta" and m.run == 2:
        return Const(False)  # what was loaded once is not on the meta device any more
    if value.tensor is None and isinstance(m.named.get(value.label), Obj):
        obj = as_object(m, value)
        if obj is not None:
            return read(m, obj, name, node)
    if value.tensor is not None or tensors.is_tensor_name(name):
        if value.tensor is None and name in tensors.AMBIGUOUS:
            return BoundMethod(_set_of(m, value, node) if name == "add" else value, name)
        tensor = as_tensor(m, value)
        if tensor is not None:
            return tensors.attribute(m, tensor, name, node)
    obj = as_object(m, value) if value.home is not None else None
    if obj is not None:
        return _read_object(m, obj, name, node)
    number = _number_of_weights(m, value.label, name) if m.lazy else None
    return number or Unknown(f"{value.label}.{name}")


def _number_of_weights(m: Interpreter, label: str, name: str) -> Scalar | None:
    """What a hook keeps as a host number that it reads from a weight, as run-time code finds it."""
    if name not in numbers_of_weights(m.index):
        return None
    label = f"{label}.{name}"
    tensor = m.named.get(label)
    if tensor is None:
        tensor = m.named[label] = m.weight(f"{label}.scale", is_parameter=False)
    return m.number("item", tensor) if isinstance(tensor, Tensor) else None


def _set_of(m: Interpreter, value: Unknown, node: ast.AST) -> Value:
    """What ``x.add(y)`` adds to, as a statement: a set that a class or module holds, which remembers what is added."""
    statement = m.frame.statement
    alone = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and statement.value.func is node
    if not alone or value.home is not None or not is_stable(value.label):
        return value
    known = m.named.setdefault(value.label, ListValue([], closed=False))
    return known if isinstance(known, ListValue) else value


def _read_module(m: Interpreter, module: Module, name: str) -> Value:
    known = m.globals.get((module.name, name))
    if known is not None:
        return known
    found = m.index.resolve(module, name)
    if found is None:
        inner = m.index.module(f"{module.name}.{name}")
        return ModuleValue(inner) if inner is not None else Unknown(f"{module.name}.{name}")
    return resolved_value(m, found, module, name)


def _read_external(m: Interpreter, value: External, name: str) -> Value:
    label = f"{value.label}.{name}"
    known: Value | None = m.index.lasting.get(label)
    if known is None:
        found = m.index.dotted(label)
        known = resolved_value(m, found, m.frame.info.module, name) if found is not None else External(label)
        if not isinstance(found, tuple):
            m.index.lasting[label] = known
    return known


def _read_class(m: Interpreter, info: ClassInfo, name: str, node: ast.AST) -> Value:
    member = m.index.member(info, name)
    if member is not None:
        cls, method = member
        if method is not None:
            return Function(method, None, ClassValue(info)) if method.is_classmethod else Function(method)
        if m.index.is_enumeration(info):
            return Const(("enum", info.name, name))
        return _class_attribute(m, cls, name, node)
    if name == "__name__":
        return Const(info.name)
    if (id(info), name) in m.class_attributes:
        return m.class_attributes[(id(info), name)]
    return Unknown(f"{info.name}.{name}")


def _read_super(m: Interpreter, value: SuperValue, name: str, node: ast.AST) -> Value:
    receiver = value.receiver
    cls = receiver.cls if isinstance(receiver, Obj) else receiver.info if isinstance(receiver, ClassValue) else None
    if cls is not None:
        order = m.index.mro(cls)
        start = order.index(value.after) + 1 if value.after in order else 0
        for base in order[start:]:
            if name in base.methods:
                return _bind(m, base.methods[name], receiver, node)
    if isinstance(receiver, Obj) and receiver.is_module:
        return BoundMethod(receiver, name)
    return BoundMethod(Unknown("super()"), name)


def _read_constant(value: Const, name: str) -> Value:
    if value.value is None:
        raise Raised("None has no attributes")
    if isinstance(value.value, tuple) and value.value[:1] == ("enum",):
        return Const(value.value[2]) if name == "name" else Unknown(f"{value.value[1]}.{value.value[2]}.{name}")
    return BoundMethod(value, name)


# ---- asking


def has(m: Interpreter, value: Value, name: str, node: ast.AST) -> bool:
    """``hasattr(value, name)``, decided by the state where the state knows."""
    if isinstance(value, Unknown):
        value = value.tensor or m.named.get(value.label, value)
    if isinstance(value, Obj):
        found = value.attributes.get(name)
        if found is not None:
            return found is not DELETED
        if name in value.absent:
            return False
        if value.cls is not None and _member_exists(m, value.cls, name):
            return True
        return initial.exists(m, value, name, node)
    if isinstance(value, Tensor):
        if name in value.attributes or tensors.is_tensor_name(name):
            return True
        if value.storage.born:
            return False
        label = f"hasattr({value.home},{name})" if value.home else "?"
        return bool(m.ask(label, node, default=None if m.frame.wanted is not None else 0))
    if isinstance(value, Const):
        return hasattr(value.value, name)
    if isinstance(value, ClassValue):
        return _member_exists(m, value.info, name)
    return bool(m.ask(f"hasattr({label_of(value)},{name})", node))


def _member_exists(m: Interpreter, cls: ClassInfo, name: str) -> bool:
    return m.index.member(cls, name) is not None
