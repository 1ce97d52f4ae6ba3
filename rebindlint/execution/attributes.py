"""Reading, writing and deleting attributes of symbolic values."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from rebindlint.execution import constants, elements, initial, tensors
from rebindlint.execution.foreign import is_of_foreign_object, own_object, own_tensor
from rebindlint.execution.interpreter import Interpreter, Raised
from rebindlint.execution.values import (
    DELETED,
    NOTHING,
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
from rebindlint.model import Binding

if TYPE_CHECKING:
    from rebindlint.index.tree import Resolved

__all__ = [
    "as_object",
    "as_tensor",
    "delete",
    "element_of",
    "has",
    "maybe_tensor",
    "names_weight",
    "operand",
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


# ---- promotion of unknown values


def as_tensor(m: Interpreter, value: Value) -> Tensor | None:
    """The tensor that an unknown value turns out to be; the value itself when it is one already."""
    if isinstance(value, Tensor):
        return value
    if not isinstance(value, Unknown):
        return None
    if value.tensor is not None:
        return value.tensor
    if value.made_from is not None and value.made_from[0] == "[]":
        return _promoted_element(m, value)
    if value.made_from is not None:
        operation, operands = value.made_from
        value.tensor = m.fresh(
            operation,
            [as_tensor(m, o) or o if isinstance(o, Unknown) and (o.home or o.made_from) else o for o in operands],
        )
        return value.tensor
    if is_of_foreign_object(value):
        return own_tensor(m, value)
    known = m.named.get(value.label)
    if isinstance(known, Tensor):
        tensor = known
    elif known is not None and not (isinstance(known, Obj) and known.cls is None):
        return None
    else:
        home = value.home[0] if value.home else None
        if m.lazy and value.home is None and value.label.startswith("argument "):
            given = _MOVED.sub("", value.label)
            is_weight = names_weight(given.removeprefix("argument "))
            tensor = m.weight(given, is_parameter=False) if is_weight else m.given(value.label)
        else:
            tensor = m.weight(value.label, is_parameter=home is not None and home.is_module)
        m.named[value.label] = tensor
        if isinstance(known, Obj):  # it looked like some object until now
            tensor.attributes.update(known.attributes)
    value.tensor = tensor
    if value.home is not None:
        obj, name = value.home
        obj.initial.setdefault(name, (tensor.dtype, tensor.shape))
        if obj.attributes.get(name) is value or (isinstance(known, Obj) and obj.attributes.get(name) is known):
            obj.attributes[name] = tensor
            if obj.is_module and tensor.is_parameter:
                obj.registered.add(name)
    return tensor


def element_of(m: Interpreter, holder: Unknown, label: str, index: Value | None = None) -> Value:
    """What an attribute of unknown kind has under an index: the same thing each time, hung on the attribute's owner."""
    assert holder.home is not None
    owner, name = holder.home
    key = f"{name}[{label}]"
    known = owner.attributes.get(key)
    if known is None or known is DELETED:
        text = f"{holder.label}[{label}]"
        made = elements.new_element(m, owner, name, text, m.frame.statement) if owner.cls is not None else None
        if made is not None:
            m.named.setdefault(made.label, made)
        known = made or Unknown(text, (owner, key), ("[]", [holder, index or Unknown(label)]))
        owner.attributes[key] = known
    return known


def _promoted_element(m: Interpreter, value: Unknown) -> Tensor | None:
    """An element that is used as a tensor: of a weight a view of it, else a tensor by itself."""
    assert value.made_from is not None
    holder, index = value.made_from[1]
    home = holder.home if isinstance(holder, Unknown) else None
    if home is not None and home[0].is_module and names_weight(home[1]) and isinstance(holder, Unknown):
        whole = as_tensor(m, holder)
        if whole is not None:
            value.tensor = tensors.element(m, whole, index)
            if value.home is not None:
                value.home[0].attributes.pop(value.home[1], None)
            return value.tensor
    known = m.named.get(value.label)
    if known is not None and not isinstance(known, Tensor) and not (isinstance(known, Obj) and known.cls is None):
        return None
    value.tensor = known if isinstance(known, Tensor) else m.weight(value.label, is_parameter=False)
    m.named[value.label] = value.tensor
    if value.home is not None and value.home[0].attributes.get(value.home[1]) in (value, known):
        value.home[0].attributes[value.home[1]] = value.tensor
    return value.tensor


def maybe_tensor(value: Value) -> Tensor | None:
    """The tensor behind a value without turning anything into one."""
    return value if isinstance(value, Tensor) else value.tensor if isinstance(value, Unknown) else None


_MOVED = re.compile(r"(?:\.(?:cpu|cuda|to|float|half|detach|contiguous)\([^()]*\))+$")
_WEIGHT = re.compile(r"(?:^|_)(?:q?weights?|scales?|bias|q?zeros|zero_points?)(?:_inv|_packed|_\d)?$")


def names_weight(name: str) -> bool:
    """Whether a module has a weight under that name, by how weights are called."""
    return bool(_WEIGHT.search(name))


def operand(m: Interpreter, value: Value) -> Tensor | None:
    """The tensor behind an operand of arithmetic; what a module has under a weight's name is one."""
    if isinstance(value, Unknown) and value.tensor is None and value.home is not None and value.home[0].is_module:
        return as_tensor(m, value) if names_weight(value.home[1]) else None
    return maybe_tensor(value)


def as_object(m: Interpreter, value: Value) -> Obj | None:
    """The object that an unknown value turns out to be."""
    if isinstance(value, Obj):
        return value
    if not isinstance(value, Unknown) or value.tensor is not None:
        return None
    if is_of_foreign_object(value):
        return own_object(m, value)
    known = m.named.get(value.label)
    if known is None:
        home = value.home[0] if value.home else None
        name = value.home[1] if value.home else ""
        known = Obj(
            value.label,
            is_module=home is not None and home.is_module and not initial.names_no_module(name),
            exact=False,
        )
        m.named[value.label] = known
        known.home = value.home
    if not isinstance(known, Obj):
        return None
    if value.home is not None and value.home[0].attributes.get(value.home[1]) is value:
        value.home[0].attributes[value.home[1]] = known
    return known


# ---- reading


def read(m: Interpreter, value: Value, name: str, node: ast.AST) -> Value:
    """``value.name``; raises what Python would raise only for attributes known to be deleted or absent."""
    m.tick()
    if isinstance(value, Obj):
        tensor = _turned_tensor(m, value, name)
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


def _turned_tensor(m: Interpreter, obj: Obj, name: str) -> Tensor | None:
    """The tensor that a thing of unknown class turns out to be when an attribute is used that only tensors have."""
    if obj.cls is not None or obj.home is None or name in obj.attributes or name in tensors.AMBIGUOUS:
        return None
    return as_tensor(m, Unknown(obj.label, obj.home)) if tensors.is_tensor_name(name) else None


def _read_object(m: Interpreter, obj: Obj, name: str, node: ast.AST) -> Value:
    found = obj.attributes.get(name)
    if found is DELETED and m.computed.get(id(obj), (0, None))[0] == m.run and names_weight(name):
        return _bind_computed(m, obj, name)
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
    if m.lazy and not initial.is_computed_number(m, obj, name):
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
    if _may_be_computed(m, obj, name):
        return _bind_computed(m, obj, name)
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
    if initial.is_written(m, obj.cls, name) or (not obj.exact and initial.is_set_below(m, obj.cls, name)):
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


# ---- writing


def write(m: Interpreter, target: Value, name: str, value: Value, binding: Binding = Binding.ATTRIBUTE) -> None:
    """``target.name = value``, with what a setter, ``.data`` and registration make of it."""
    m.tick()
    if isinstance(target, Unknown):
        if name == "data":
            target = as_tensor(m, target) or target
        elif target.tensor is None:
            target = as_object(m, target) or target
        else:
            target = target.tensor
    if isinstance(target, Obj) and name == "data":
        target = _turned_tensor(m, target, name) or target
    if isinstance(target, Tensor):
        _write_tensor(m, target, name, value)
    elif isinstance(target, Obj):
        _write_object(m, target, name, value, binding)
    elif isinstance(target, ClassValue):
        key = (id(target.info), name)
        old = m.class_attributes.get(key)
        m.class_attributes[key] = value
        _note(m, target.info, name, value, old, binding)
    elif isinstance(target, ModuleValue):
        m.globals[(target.module.name, name)] = value


def _write_tensor(m: Interpreter, target: Tensor, name: str, value: Value) -> None:
    if name != "data":
        target.attributes[name] = value
        return
    source = as_tensor(m, value)
    if source is None:
        return
    move(m, target, source)


def move(m: Interpreter, target: Tensor, source: Tensor) -> None:
    """``target`` shows the memory of ``source`` from now on."""
    old, before = target.alias(), m.moved.get(id(target))
    if before is not None:
        m.moved_earlier.setdefault(id(target), []).append(before)
    target.storage, target.path, target.strided = source.storage, source.path, source.strided
    target.dtype, target.shape, target.certain = source.dtype, source.shape, source.certain
    m.moved[id(target)] = m.site(Binding.DATA, source, old)
    m.keep.append(target)


def _write_object(m: Interpreter, obj: Obj, name: str, value: Value, binding: Binding) -> None:
    setter = _setter(m, obj, name)
    if setter is not None:
        from rebindlint.execution.calls import enter

        enter(m, Function(setter, None, obj), [value], {}, m.frame.statement)
        return
    if m.run == 1 and obj.is_module and obj.cls is not None and not obj.born:
        for alias in obj.cls.aliases.get(name, ()):
            if alias not in obj.attributes:
                initial.attribute(m, obj, alias, m.frame.statement)
    old = obj.attributes.get(name)
    if old is None and name not in obj.absent:
        old = initial.before_write(m, obj, name)
    obj.absent.discard(name)
    if obj.is_module and isinstance(old, Unknown) and old.home is not None and maybe_tensor(value) is not None:
        old = as_tensor(m, old)  # what gives way to a tensor was one
    tensor = maybe_tensor(value)
    if tensor is not None and tensor.is_parameter and binding is Binding.ATTRIBUTE:
        binding = Binding.PARAMETER
    elif isinstance(value, Const) and value.value is None and maybe_tensor(old or NOTHING) is not None:
        binding = Binding.RELEASE
    _register(m, obj, name, tensor, binding)
    obj.attributes[name] = tensor if tensor is not None else value
    _note(m, obj, name, value, old, binding)
    if "{" in name and tensor is not None and tensor.is_parameter:
        m.computed[id(obj)] = (m.run, tensor)
        for other in m.derived.get(id(obj), ()):
            _bind_computed(m, obj, other)


def _bind_computed(m: Interpreter, obj: Obj, name: str) -> Tensor:
    """A name that nothing else in the tree binds: the statement that just bound parameters under computed names did."""
    _, source = m.computed[id(obj)]
    made = m.fresh(f"computed {name}", [source], dtype=f"dtype({obj.label}.{name})")
    made.is_parameter = True
    obj.attributes[name] = made  # the finding, if any, is that of the statement, and under its own name
    obj.absent.discard(name)
    obj.registered.add(name)
    m.derived.setdefault(id(obj), set()).add(name)
    return made


def _may_be_computed(m: Interpreter, obj: Obj, name: str) -> bool:
    """Whether a read of an attribute that was never seen comes behind a statement that bound computed names."""
    known = m.computed.get(id(obj))
    if known is None or known[0] != m.run or "{" in name or name in obj.initial or name in obj.absent:
        return False
    if m.oracle.answers.get(("?", f"hasattr({obj.label},{name})", 2)):
        return False  # it was asked for by its own name, and taken to be there from the start
    written = obj.cls is not None and any(
        name in c.writes or name in c.methods or name in c.attributes for c in m.index.mro(obj.cls)
    )
    return not written and names_weight(name)


def _register(m: Interpreter, obj: Obj, name: str, tensor: Tensor | None, binding: Binding) -> None:
    if not obj.is_module:
        return
    if m.run == 1 and tensor is not None and not tensor.is_parameter and initial.is_empty_buffer(m, obj, name):
        obj.registered.add(name)
        obj.unsaved.add(name)
    if binding is Binding.PARAMETER:
        obj.registered.add(name)
    elif tensor is not None and not tensor.is_parameter and name in obj.registered:
        pass  # a buffer stays registered; a parameter's name cannot take a plain tensor
    elif tensor is None:
        obj.registered.discard(name)


def _setter(m: Interpreter, obj: Obj, name: str) -> FunctionInfo | None:
    if obj.cls is None:
        return None
    key = ("setter", id(obj.cls), name)
    if key not in m.index.pure:
        homes = (c for c in m.index.mro(obj.cls) if name in c.setters or name in c.methods or name in c.attributes)
        home = next(homes, None)
        m.index.pure[key] = home.setters.get(name) if home is not None else None
    found: FunctionInfo | None = m.index.pure[key]
    return found


def _note(m: Interpreter, container: object, name: object, value: Value, old: Value | None, binding: Binding) -> None:
    m.keep.append(container)
    key = (id(container), name)
    tensor, before = maybe_tensor(value), maybe_tensor(old) if old is not None else None
    same = tensor is not None and before is not None and tensor.storage is before.storage and tensor.path == before.path
    if same and tensor is not before and key in m.sites:
        return  # wrapped anew: the statement that brought this memory is the one to blame
    site = m.sites[key] = m.site(binding, tensor or value, old)
    if m.run == 1:
        m.bindings.setdefault(id(site.statement), len(m.oracle.asked))


def note_slot(m: Interpreter, container: object, key: object, value: Value, old: Value | None) -> None:
    """Record that a slot of a container was bound."""
    binding = Binding.SLOT
    if isinstance(container, DictValue) and container.owner is not None:
        binding = Binding.ATTRIBUTE if container.label.endswith("__dict__") else Binding.SLOT
        container = container.owner
        if isinstance(container, Obj) and container.is_module and maybe_tensor(value) is not None:
            container.registered.add(str(key))
    _note(m, container, key, value, old, binding)


def delete(m: Interpreter, target: Value, name: str) -> None:
    """``del target.name``; deleting what is known to be absent raises."""
    if isinstance(target, Unknown):
        target = as_object(m, target) or target
    if isinstance(target, Tensor):
        target.attributes.pop(name, None)
    if not isinstance(target, Obj):
        return
    old = target.attributes.get(name)
    if (old is DELETED or name in target.absent) and (m.run == 1 or (id(target), name) in m.revived):
        m.revived.add((id(target), name))
        return
    if old is DELETED or name in target.absent:
        raise Raised(f"no attribute {name}")
    if old is None:
        old = initial.before_write(m, target, name)
    if m.run == 1 and old is None and target.is_module and not target.born:
        target.initial.setdefault(name, ("", 0))  # the first run could delete it, so a checkpoint has it
    if m.run == 1 and target.is_module and initial.is_submodule(m, target, name, old):
        m.lost_modules = True
    if m.run == 1 and m.governing:
        m.deleted[name] = m.governing[-1]
    target.attributes[name] = DELETED
    target.registered.discard(name)
    _note(m, target, name, NOTHING, old, Binding.RELEASE)
