"""Functions that the project's configuration declares: its own replace helpers and allocators, also where they cannot be entered."""

from __future__ import annotations

from dataclasses import replace

from rebindlint.execution import attribute_writes, in_place, promotion, torch_functions
from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.values import NOTHING, Const, Obj, Value
from rebindlint.model import Binding, HelperKind

__all__ = ["declared"]


def declared(m: Interpreter, name: str, args: list[Value], keywords: dict[str, Value]) -> Value | None:
    """What a declared function of that dotted name does, None for every other.

    So is the replace helper of a vllm that the tree imports and does not contain. An allocator gives newly allocated memory. A helper is called as ``helper(owner, name, tensor)``: it ``rebinds``, or it
    ``copies`` (``copies-if`` the layouts agree, which they do on a reload) into the tensor that stands under the name.
    """
    config = m.index.config
    if name in config.allocators:
        return m.fresh(name, [*args, *keywords.values()])
    own = dict(config.helpers).get(name)
    kind, outside = own, m.index.outside
    if kind is None and outside.kind is not None and name == f"{outside.module}.{outside.function}":
        asked = keywords.pop("prefer_copy", None)
        copies = outside.kind is HelperKind.COPIES or (
            outside.kind is HelperKind.PREFER_COPY and isinstance(asked, Const) and asked.value is True
        )
        kind = "copies" if copies else "rebinds"
    if kind is None:
        return None
    given = [*args, *keywords.values()]
    owner = promotion.as_object(m, given[0]) if given else None
    if owner is None or len(given) < 3 or not isinstance(given[1], Const) or not isinstance(given[1].value, str):
        return NOTHING
    tensor = promotion.as_tensor(m, given[2])
    if tensor is not None:
        _bind(m, owner, given[1].value, torch_functions.parameter(m, tensor), copies=kind != "rebinds")
        key = (id(owner), given[1].value)
        if own is None and key in m.sites:
            m.sites[key] = replace(m.sites[key], binding=Binding.REPLACE, helper=outside)
    return NOTHING


def _bind(m: Interpreter, owner: Obj, name: str, value: Value, *, copies: bool) -> None:
    held = owner.attributes.get(name)
    current = promotion.maybe_tensor(held) if held is not None else None
    source = promotion.maybe_tensor(value)
    if copies and m.run == 2 and current is not None and source is not None:
        in_place.copy_into(m, current, source)
    else:
        attribute_writes.write(m, owner, name, value, Binding.PARAMETER)
