"""The state that the hook finds when it runs for the first time, worked out for what it reads and nothing else.

Executing every constructor would cost more than the hooks themselves. So an attribute is evaluated when it is first
read: from the assignments that the class makes to it, with an oracle choosing among several.
"""

from __future__ import annotations

import ast
import re

from rebindlint.execution.allocations import allocates
from rebindlint.execution.annotations import annotated
from rebindlint.execution.constructed import Constructed, possible_writes, shared_question
from rebindlint.execution.constructor_values import assigned_value
from rebindlint.execution.constructor_writes import (
    all_writes,
    constructs,
    is_unsaved_buffer,
    is_written,
    last_writes,
    runs_before_hooks,
)
from rebindlint.execution.elements import element_classes
from rebindlint.execution.exchanged import exchange_class
from rebindlint.execution.interpreter import Interpreter, Raised
from rebindlint.execution.makers import is_set_by_makers
from rebindlint.execution.naming import names_weight
from rebindlint.execution.values import (
    Const,
    DictValue,
    ListValue,
    Obj,
    Tensor,
    Unknown,
    Value,
)
from rebindlint.index.hooks import is_loading_name

__all__ = [
    "MODULE_METHODS",
    "allocate_all",
    "attribute",
    "before_write",
    "exists",
    "is_written",
    "tie",
]

MODULE_METHODS = frozenset(
    {
        "register_parameter",
        "register_buffer",
        "register_module",
        "add_module",
        "named_parameters",
        "parameters",
        "named_buffers",
        "buffers",
        "modules",
        "named_modules",
        "children",
        "named_children",
        "to",
        "cuda",
        "cpu",
        "half",
        "float",
        "apply",
        "get_parameter",
        "get_submodule",
        "state_dict",
        "load_state_dict",
        "requires_grad_",
        "eval",
        "train",
        "type",
    }
)


def attribute(m: Interpreter, obj: Obj, name: str, node: ast.AST) -> Value:
    """``obj.name`` as it was before the hook; bound on the object so that both runs see the same thing."""
    if name in obj.absent and m.run == 1:
        m.revived.add((id(obj), name))
    elif name in obj.absent and (id(obj), name) not in m.revived:
        raise Raised(f"no attribute {name}")
    value = _initial(m, obj, name, node)
    if isinstance(value, Obj):
        exchange_class(m, obj, name, value)
    if isinstance(value, (Tensor, Unknown)) and is_unsaved_buffer(m, obj, name):
        value = m.fresh(f"init {obj.label}.{name}", dtype=value.dtype if isinstance(value, Tensor) else "")
        value.storage.born = value.storage.changed = 0
        obj.registered.add(name)
    if obj.attributes.get(name) is None:
        obj.attributes[name] = value
        if isinstance(value, Unknown) and value.home is None:
            value.home = (obj, name)
    tensor = value if isinstance(value, Tensor) else None
    if tensor is not None:
        obj.initial[name] = (tensor.dtype, tensor.shape)
        tensor.home = tensor.home or f"{obj.label}.{name}"
        if obj.is_module and tensor.is_parameter:
            obj.registered.add(name)
    return obj.attributes[name]


def _initial(m: Interpreter, obj: Obj, name: str, node: ast.AST) -> Value:
    label = f"{obj.label}.{name}"
    if obj.cls is None:
        return Unknown(label, (obj, name))
    options = last_writes(m, obj.cls, name)
    if options:
        chosen = 0
        if len(options) > 1 and isinstance(obj, Constructed):
            options = possible_writes(m, obj, name, options)
        if len(options) > 1:
            asked = f"init {obj.label}:{obj.cls.name}.{name}"
            if isinstance(obj, Constructed) and (decides := shared_question(m, obj, options)):
                asked = f"init {obj.maker.label}:{obj.cls.name}.{name} by {decides}"
            chosen = m.ask(asked, node, len(options), default=len(options) - 1)
        value = assigned_value(m, options[chosen], obj, label)
        if isinstance(value, Const) and value.value is None and len(options) == 1 and is_set_by_makers(m, obj, name):
            return Unknown(label, (obj, name))
        if isinstance(value, (ListValue, DictValue)) and not value.items and element_classes(m, obj, name):
            return Unknown(label, (obj, name))  # the constructor fills it
        return value
    home = next((b for b in m.index.mro(obj.cls) if name in b.annotations), None)
    if home is not None:
        return annotated(m, home.annotations[name], home.module, label, node)
    return Unknown(label, (obj, name))


def tie(m: Interpreter, obj: Obj) -> None:
    """Let modules share the parameters that the object's constructor makes them share."""
    from rebindlint.execution.attributes import read
    from rebindlint.execution.promotion import as_object, as_tensor

    for base in m.index.mro(obj.cls) if obj.cls is not None else ():
        for left, name, right, other in base.ties:
            node = base.node
            target, source = as_object(m, read(m, obj, left, node)), as_object(m, read(m, obj, right, node))
            shared = as_tensor(m, read(m, source, other, node)) if source is not None else None
            if target is not None and shared is not None and shared.is_parameter:
                target.attributes[name] = shared
                target.registered.add(name)
                target.initial[name] = (shared.dtype, shared.shape)


def allocate_all(m: Interpreter, obj: Obj) -> None:
    """Look at every tensor that the constructors of an object allocate, whether the hook does or not."""
    for base in m.index.mro(obj.cls) if obj.cls is not None else ():
        for name, writes in base.writes.items():
            if name not in obj.attributes and any(constructs(w.function) and allocates(m, w) for w in writes):
                attribute(m, obj, name, writes[0].function.node)


# ---- existence


def exists(m: Interpreter, obj: Obj, name: str, node: ast.AST) -> bool:
    """``hasattr`` before the hook: constructors decide; what only hooks bind is absent; else the oracle."""
    if obj.cls is not None:
        writes = all_writes(m, obj.cls, name)
        before = [w for w in writes if runs_before_hooks(w.function)]
        if any(not w.conditional for w in before):
            return True
        if obj.exact and writes and not before and all(is_loading_name(w.function.name) for w in writes):
            obj.absent.add(name)
            return False
    if not _is_foreign_weight(m, obj, name) and m.ask(f"hasattr({obj.label},{name})", node):
        return True
    obj.absent.add(name)
    return False


def _is_foreign_weight(m: Interpreter, obj: Obj, name: str) -> bool:
    """A weight's name that the files of the method which made the layer's weights never mention: another method's layers have it."""
    cls = m.created_by.get(id(obj))
    if cls is None or name in obj.initial or name == "bias" or not names_weight(name):
        return False  # a bias is the layer's own affair
    key = ("mentions", id(cls), name)
    known: bool | None = m.index.pure.get(key)
    if known is None:
        word = re.compile(rf"\b{re.escape(name)}\b")
        texts = [base.module.text for base in m.index.mro(cls)]
        known = m.index.pure[key] = any(name in text and word.search(text) for text in texts)
    return not known


def before_write(m: Interpreter, obj: Obj, name: str) -> Value | None:
    """What a cell held before its first write in a hook, without asking anything: None when it may not have existed."""
    if obj.born or obj.cls is None:
        return m.named.get(f"{obj.label}.{name}")
    writes = [
        w for w in all_writes(m, obj.cls, name) if w.function.name in ("__init__", "__post_init__", "create_weights")
    ]
    tensorish = [
        w for w in writes if w.value is not None and not (isinstance(w.value, ast.Constant) and w.value.value is None)
    ]
    if tensorish:
        obj.initial[name] = ("", 0)
    return None
