"""What unknown values turn out to be: tensors or objects, by how they are used."""

from __future__ import annotations

import re

from rebindlint.execution import elements, tensors
from rebindlint.execution.foreign import is_of_foreign_object, own_object, own_tensor
from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.naming import names_no_module, names_weight
from rebindlint.execution.values import DELETED, Obj, Tensor, Unknown, Value

__all__ = ["as_object", "as_tensor", "element_of", "maybe_tensor", "operand", "turned_tensor"]

_MOVED = re.compile(r"(?:\.(?:cpu|cuda|to|float|half|detach|contiguous)\([^()]*\))+$")


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
            is_module=home is not None and home.is_module and not names_no_module(name),
            exact=False,
        )
        m.named[value.label] = known
        known.home = value.home
    if not isinstance(known, Obj):
        return None
    if value.home is not None and value.home[0].attributes.get(value.home[1]) is value:
        value.home[0].attributes[value.home[1]] = known
    return known


def turned_tensor(m: Interpreter, obj: Obj, name: str) -> Tensor | None:
    """The tensor that a thing of unknown class turns out to be when an attribute is used that only tensors have."""
    if obj.cls is not None or obj.home is None or name in obj.attributes or name in tensors.AMBIGUOUS:
        return None
    return as_tensor(m, Unknown(obj.label, obj.home)) if tensors.is_tensor_name(name) else None
