"""Methods that every ``nn.Module`` has."""

from __future__ import annotations

import ast

from rebindlint.execution import attribute_writes, attributes, promotion
from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.naming import attribute_name
from rebindlint.execution.values import (
    NOTHING,
    Const,
    ListValue,
    Obj,
    Tensor,
    Unknown,
    Value,
    label_of,
)
from rebindlint.model import Binding

__all__ = ["module_method"]


def module_method(
    m: Interpreter, obj: Obj, name: str, args: list[Value], keywords: dict[str, Value], node: ast.AST
) -> Value:
    """``obj.name(*args)``."""
    if name in ("register_parameter", "register_buffer") and (args or "name" in keywords):
        key = attribute_name(args[0] if args else keywords["name"])
        value = args[1] if len(args) > 1 else keywords.get("param", keywords.get("tensor", NOTHING))
        tensor = promotion.as_tensor(m, value)
        if tensor is not None and name == "register_buffer" and tensor.is_parameter:
            tensor = tensor.alias()
        persistent = keywords.get("persistent", args[2] if len(args) > 2 else None)
        if name == "register_buffer" and isinstance(persistent, Const) and persistent.value is False:
            obj.unsaved.add(key)
        attribute_writes.write(
            m, obj, key, tensor or value, Binding.PARAMETER if tensor is not None else Binding.ATTRIBUTE
        )
        return NOTHING
    if name in ("register_module", "add_module") and len(args) > 1:
        attribute_writes.write(m, obj, attribute_name(args[0]), args[1])
        return NOTHING
    if name in ("named_parameters", "named_buffers", "parameters", "buffers"):
        wanted = "parameters" in name
        registered = ((k, v) for k, v in obj.attributes.items() if isinstance(v, Tensor) and k in obj.registered)
        pairs = [(k, v) for k, v in registered if v.is_parameter is wanted]
        if not pairs:  # one that nothing is known of stands for all
            any_of_them: Value = Unknown(f"{obj.label}.{name}()[*]")
            return ListValue(
                [ListValue([Unknown("name"), any_of_them])] if name.startswith("named") else [any_of_them], False
            )
        return ListValue(
            [ListValue([Const(k), v]) for k, v in pairs] if name.startswith("named") else [v for _, v in pairs]
        )
    if name == "get_parameter" and args:
        return attributes.read(m, obj, attribute_name(args[0]), node)
    if name in ("to", "cuda", "cpu", "half", "float", "eval", "train", "requires_grad_", "apply", "type"):
        return obj
    if name in ("modules", "children", "named_modules", "named_children"):
        child = promotion.element_of(m, Unknown(f"{obj.label}.modules()", (obj, "modules()")), "*")
        return ListValue([ListValue([Unknown("name"), child]) if name.startswith("named") else child], closed=False)
    return Unknown(f"{obj.label}.{name}({','.join(label_of(a) for a in args)})")
