"""Objects of classes outside the tree: each call of the class makes another one, with tensors of its own."""

from __future__ import annotations

import re

from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.values import Obj, Tensor, Unknown

__all__ = [
    "WITH_WEIGHT",
    "foreign_module",
    "foreign_object",
    "is_of_foreign_object",
    "names_class",
    "own_object",
    "own_tensor",
]

_CLASS = re.compile(r"_*[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")
WITH_WEIGHT = re.compile(r"(?:Lazy)?(?:Linear|Bilinear|Embedding(?:Bag)?|Conv(?:Transpose)?[123]d|\w*Norm(?:[123]d)?)")
_GETTER = re.compile(r"_*(?:get|select|resolve|find|choose|infer|load|make)_")


def names_class(name: str) -> bool:
    """Whether a callable is a class, by its name: ``Linear``, or a variable such as ``linear_class``."""
    return _CLASS.fullmatch(name) is not None or (name.endswith(("_cls", "_class")) and _GETTER.match(name) is None)


def foreign_object(m: Interpreter, label: str) -> Obj:
    """A new object of which nothing is known but that it is new."""
    made = Obj(label, exact=False, born=max(m.run, 1))
    m.keep.append(made)
    return made


def foreign_module(m: Interpreter, label: str, with_weight: bool) -> Obj:
    """A new module of torch's own. Its weight is new memory that no checkpoint has filled yet."""
    made = foreign_object(m, label)
    made.is_module = True
    if with_weight:
        weight = made.attributes["weight"] = m.fresh(f"new {label}.weight")
        weight.is_parameter = True
        made.registered.add("weight")
    return made


def is_of_foreign_object(value: Unknown) -> bool:
    """Whether this is an attribute of such an object."""
    return value.home is not None and bool(value.home[0].born) and value.home[0].cls is None


def own_tensor(m: Interpreter, value: Unknown) -> Tensor:
    """What such an attribute is when it is used as a tensor: memory that came with the object."""
    assert value.home is not None
    owner, name = value.home
    tensor = value.tensor = m.fresh(f"new {value.label}", dtype=f"dtype({value.label})")
    tensor.storage.born = tensor.storage.changed = owner.born
    if owner.attributes.get(name) is value:
        owner.attributes[name] = tensor
    return tensor


def own_object(m: Interpreter, value: Unknown) -> Obj:
    """What such an attribute is when it is used as an object: as new as the one around it."""
    assert value.home is not None
    owner, name = value.home
    made = foreign_object(m, value.label)
    made.born = owner.born
    if owner.attributes.get(name) is value:
        owner.attributes[name] = made
    return made
