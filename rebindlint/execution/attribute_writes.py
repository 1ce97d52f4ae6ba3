"""Writing and deleting attributes of symbolic values, and which statement did it last."""

from __future__ import annotations

from rebindlint.execution import in_place, initial
from rebindlint.execution.constructor_writes import is_empty_buffer, is_submodule
from rebindlint.execution.interpreter import Interpreter, Raised
from rebindlint.execution.naming import names_weight
from rebindlint.execution.promotion import as_object, as_tensor, maybe_tensor, turned_tensor
from rebindlint.execution.values import (
    DELETED,
    NOTHING,
    ClassValue,
    Const,
    DictValue,
    Function,
    ModuleValue,
    Obj,
    Tensor,
    Unknown,
    Value,
)
from rebindlint.index.classes import FunctionInfo
from rebindlint.model import Binding

__all__ = ["bind_computed", "delete", "may_be_computed", "note_slot", "write"]


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
        target = turned_tensor(m, target, name) or target
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
    in_place.move(m, target, source)


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
            bind_computed(m, obj, other)


def bind_computed(m: Interpreter, obj: Obj, name: str) -> Tensor:
    """A name that nothing else in the tree binds: the statement that just bound parameters under computed names did."""
    _, source = m.computed[id(obj)]
    made = m.fresh(f"computed {name}", [source], dtype=f"dtype({obj.label}.{name})")
    made.is_parameter = True
    obj.attributes[name] = made  # the finding, if any, is that of the statement, and under its own name
    obj.absent.discard(name)
    obj.registered.add(name)
    m.derived.setdefault(id(obj), set()).add(name)
    return made


def may_be_computed(m: Interpreter, obj: Obj, name: str) -> bool:
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
    if m.run == 1 and tensor is not None and not tensor.is_parameter and is_empty_buffer(m, obj, name):
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
    if m.run == 1 and target.is_module and is_submodule(m, target, name, old):
        m.lost_modules = True
    if m.run == 1 and m.governing:
        m.deleted[name] = m.governing[-1]
    target.attributes[name] = DELETED
    target.registered.discard(name)
    _note(m, target, name, NOTHING, old, Binding.RELEASE)
