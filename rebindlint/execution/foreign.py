"""Objects of classes outside the tree: each call of the class makes another one, with tensors of its own."""

from __future__ import annotations

import re

from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.values import ListValue, Obj, Tensor, Unknown, Value

__all__ = [
    "MADE",
    "WITH_WEIGHT",
    "Holder",
    "foreign_holder",
    "foreign_module",
    "foreign_object",
    "is_held",
    "is_of_foreign_object",
    "made_of",
    "names_class",
    "names_holder",
    "own_object",
    "own_tensor",
]

_CLASS = re.compile(r"_*[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")
WITH_WEIGHT = re.compile(r"(?:Lazy)?(?:Linear|Bilinear|Embedding(?:Bag)?|Conv(?:Transpose)?[123]d|\w*Norm(?:[123]d)?)")
MADE = "[made of what it is given]"
_TENSORS = ("Tensor", "Parameter", "Buffer", "Error", "Exception", "Warning")
_PLAIN = ("Config", "Params", "Args", "Options", "Data", "Pack", "Spec", "Metadata", "Context", "Ctx")
_GETTER = re.compile(r"_*(?:get|select|resolve|find|choose|infer|load|make)_")


def names_class(name: str) -> bool:
    """Whether a callable is a class, by its name: ``Linear``, or a variable such as ``linear_class``."""
    return _CLASS.fullmatch(name) is not None or (name.endswith(("_cls", "_class")) and _GETTER.match(name) is None)


def names_holder(name: str) -> bool:
    """Whether a callable is a class whose objects hold what they are given, and are no tensors themselves."""
    return _CLASS.fullmatch(name) is not None and not name.endswith(_TENSORS)


def foreign_object(m: Interpreter, label: str) -> Obj:
    """A new object of which nothing is known but that it is new."""
    made = Obj(label, exact=False, born=max(m.run, 1))
    m.keep.append(made)
    return made


class Holder(Obj):
    """An object that holds what its constructor, which is outside the tree, was given."""

    __slots__ = ()


def foreign_holder(m: Interpreter, label: str, args: list[Value], keywords: dict[str, Value]) -> Obj:
    """A new object that has what its constructor is given under the names of the arguments, as far as these are told.

    It may also compute something from tensors; nobody knows. What only settings are collected in does not.
    """
    made = Holder(label, exact=False, born=max(m.run, 1))
    m.keep.append(made)
    made.attributes.update({f"[{i}]": value for i, value in enumerate(args)})
    made.attributes.update(keywords)
    every = [*args, *keywords.values()]
    if not label.partition("@")[0].endswith(_PLAIN) and any(map(_has_tensor, every)):
        made.attributes[MADE] = m.fresh(label, every, certain=False)
    return made


def is_held(value: Value) -> bool:
    """Whether it is a tensor, or an object that was made from some, or one of them is in it."""
    if isinstance(value, ListValue):
        return any(map(is_held, value.items))
    return isinstance(value, Holder) or _has_tensor(value)


def _has_tensor(value: Value) -> bool:
    if isinstance(value, ListValue):
        return any(map(_has_tensor, value.items))
    return isinstance(value, Tensor) or (isinstance(value, Unknown) and value.tensor is not None)


def made_of(value: Value) -> Value:
    """What such an object may have computed from what it was given, as far as that is known; any other value as it is."""
    return value.attributes.get(MADE, value) if isinstance(value, Obj) else value


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
    made = owner.attributes.get(MADE)
    if isinstance(made, Tensor):
        tensor.storage.epochs, tensor.storage.sources = made.storage.epochs, made.storage.sources
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
