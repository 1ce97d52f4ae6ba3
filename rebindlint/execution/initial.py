"""The state that the hook finds when it runs for the first time, worked out for what it reads and nothing else.

Executing every constructor would cost more than the hooks themselves. So an attribute is evaluated when it is first
read: from the assignments that the class makes to it, with an oracle choosing among several.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from rebindlint.execution.annotations import annotated
from rebindlint.execution.constructed import Constructed, literal_argument, possible_writes, shared_question
from rebindlint.execution.elements import element_classes
from rebindlint.execution.exchanged import exchange_class
from rebindlint.execution.interpreter import Interpreter, Raised, Site
from rebindlint.execution.makers import is_set_by_makers
from rebindlint.execution.naming import names_weight
from rebindlint.execution.torch_table import SIZED
from rebindlint.execution.values import (
    ClassValue,
    Const,
    DictValue,
    ListValue,
    Obj,
    Tensor,
    Unknown,
    Value,
)
from rebindlint.index.classes import ClassInfo, FunctionInfo, InitWrite
from rebindlint.index.hooks import is_loading_name
from rebindlint.index.modules import Module, descend, text_of
from rebindlint.model import Binding

__all__ = [
    "MODULE_METHODS",
    "allocate_all",
    "attribute",
    "before_write",
    "exists",
    "is_empty_buffer",
    "is_submodule",
    "last_writes",
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


def _all_writes(m: Interpreter, cls: ClassInfo, name: str) -> list[InitWrite]:
    key = ("writes", id(cls), name)
    known: list[InitWrite] | None = m.index.pure.get(key)
    if known is None:
        known = m.index.pure[key] = [write for base in m.index.mro(cls) for write in base.writes.get(name, ())]
    return known


def is_written(m: Interpreter, cls: ClassInfo, name: str) -> bool:
    """Whether a constructor (or ``create_weights``) of the class assigns ``self.name``."""
    return any(_before_hooks(write.function) for write in _all_writes(m, cls, name))


def is_computed_number(m: Interpreter, obj: Obj, name: str) -> bool:
    """Whether the constructor gives the attribute a value, not just something that stands there until weights are loaded."""
    writes = _all_writes(m, obj.cls, name) if obj.cls is not None else []
    return any(_constructs(write.function) and not isinstance(write.value, ast.Constant) for write in writes)


def is_set_below(m: Interpreter, cls: ClassInfo, name: str) -> bool:
    """Whether a class below, of which the object may be one as well, sets the attribute itself."""
    key = ("set below", id(cls), name)
    known: bool | None = m.index.pure.get(key)
    if known is None:
        known = m.index.pure[key] = any(
            name in below.attributes or any(_before_hooks(w.function) for w in below.writes.get(name, ()))
            for below in m.index.subclasses(cls)
            if below is not cls
        )
    return known


def _constructs(function: FunctionInfo) -> bool:
    return function.name in ("__init__", "__post_init__")


def _before_hooks(function: FunctionInfo) -> bool:
    return function.name in ("__init__", "__post_init__", "create_weights", "setup")


def attribute(m: Interpreter, obj: Obj, name: str, node: ast.AST) -> Value:
    """``obj.name`` as it was before the hook; bound on the object so that both runs see the same thing."""
    if name in obj.absent and m.run == 1:
        m.revived.add((id(obj), name))
    elif name in obj.absent and (id(obj), name) not in m.revived:
        raise Raised(f"no attribute {name}")
    value = _initial(m, obj, name, node)
    if isinstance(value, Obj):
        exchange_class(m, obj, name, value)
    if isinstance(value, (Tensor, Unknown)) and _is_computed(m, obj, name):
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


def _is_computed(m: Interpreter, obj: Obj, name: str) -> bool:
    """A buffer that no checkpoint has: the constructor computes it and registers it as not persistent."""
    return obj.cls is not None and any(not write.persistent for write in _all_writes(m, obj.cls, name))


def is_empty_buffer(m: Interpreter, obj: Obj, name: str) -> bool:
    """Whether the constructor registers None as a buffer that is not persistent: a tensor that is assigned to it is registered."""
    writes = _all_writes(m, obj.cls, name) if obj.cls is not None else []
    return any(not w.persistent and isinstance(w.value, ast.Constant) and w.value.value is None for w in writes)


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
        value = _evaluate(m, options[chosen], obj, label)
        if isinstance(value, Const) and value.value is None and len(options) == 1 and is_set_by_makers(m, obj, name):
            return Unknown(label, (obj, name))
        if isinstance(value, (ListValue, DictValue)) and not value.items and element_classes(m, obj, name):
            return Unknown(label, (obj, name))  # the constructor fills it
        return value
    home = next((b for b in m.index.mro(obj.cls) if name in b.annotations), None)
    if home is not None:
        return annotated(m, home.annotations[name], home.module, label, node)
    return Unknown(label, (obj, name))


def last_writes(m: Interpreter, cls: ClassInfo, name: str) -> list[InitWrite]:
    """The assignments that may be the last before a hook: all conditional ones, and the last unconditional."""
    key = ("last writes", id(cls), name)
    known: list[InitWrite] | None = m.index.pure.get(key)
    if known is not None:
        return known
    writes = [w for w in _all_writes(m, cls, name) if _before_hooks(w.function)]
    options: list[InitWrite] = []
    for write in sorted(writes, key=lambda w: not _constructs(w.function)):
        if not write.conditional and _constructs(write.function):
            options = []
        options.append(write)
    seen: dict[str, InitWrite] = {}
    for write in options:
        seen.setdefault(text_of(write.value) if write.value is not None else "?", write)
    known = m.index.pure[key] = list(seen.values())[:4]
    return known


def _evaluate(m: Interpreter, write: InitWrite, obj: Obj, label: str) -> Value:
    """The assigned expression, seen from inside the constructor; calls are not entered."""
    node = write.value
    module = write.function.module
    if node is None:
        return (
            annotated(m, write.annotation, module, label, None)
            if write.annotation is not None
            else Unknown(label, (obj, label.rsplit(".", 1)[1]))
        )
    value = _expression(m, node, write, obj, label)
    if isinstance(value, Unknown) and write.annotation is not None and value.label == label:
        return annotated(m, write.annotation, module, label, node)
    return value


def _expression(m: Interpreter, node: ast.expr, write: InitWrite, obj: Obj, label: str) -> Value:
    home = (obj, label.rsplit(".", 1)[1])
    module = write.function.module
    if isinstance(node, ast.Constant):
        return Const(node.value)
    if isinstance(node, ast.Name):
        return _name(m, node.id, write, obj, label)
    if isinstance(node, ast.Attribute):
        return _attribute_chain(m, node, write, obj, label)
    if isinstance(node, ast.IfExp):
        branch = node.body if _holds(m, node.test, write, obj, label) else node.orelse
        return _expression(m, branch, write, obj, label)
    if isinstance(node, ast.Call):
        return _call(m, node, module, obj, label, write)
    if isinstance(node, (ast.List, ast.Tuple)) and all(isinstance(item, ast.Constant) for item in node.elts):
        return ListValue([Const(item.value) for item in node.elts if isinstance(item, ast.Constant)])
    if isinstance(node, (ast.List, ast.Tuple)) and all(isinstance(i, (ast.Constant, ast.Name)) for i in node.elts):
        folded = [_expression(m, item, write, obj, f"{label}[{i}]") for i, item in enumerate(node.elts)]
        if all(isinstance(item, Const) for item in folded):  # constants of the module
            return ListValue(folded)
    if isinstance(node, (ast.List, ast.Tuple)) and node.elts and _all_allocate(m, node.elts, module):
        return ListValue([_expression(m, item, write, obj, f"{label}[{i}]") for i, item in enumerate(node.elts)])
    if isinstance(node, ast.Dict) and not node.keys:
        return DictValue({}, label)
    if isinstance(node, ast.Dict) and all(isinstance(k, ast.Constant) for k in node.keys):
        items = {k.value: v for k, v in zip(node.keys, node.values, strict=True) if isinstance(k, ast.Constant)}
        if _all_allocate(m, items.values(), module):
            return DictValue({k: _expression(m, v, write, obj, f"{label}[{k!r}]") for k, v in items.items()}, label)
    if isinstance(node, ast.Lambda):
        return Unknown(f"<lambda {label}>")
    if isinstance(node, ast.Compare) and (decided := _decided(m, node, write, obj, label)) is not None:
        return Const(decided)
    return Unknown(label, home)


def _name(m: Interpreter, name: str, write: InitWrite, obj: Obj, label: str) -> Value:
    arguments = write.function.node.args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        if argument.arg == name:
            given = _handed_up(m, write.function, name, obj, label.rpartition(".")[2])
            if given is not None:
                return _expression(m, given.value or _NONE, given, obj, label)
            if argument.annotation is None:
                return Unknown(label, (obj, label.rsplit(".", 1)[1]))
            return annotated(
                m, argument.annotation, write.function.module, label, argument, optional=not write.conditional
            )
    local = _local(write.function, name)
    if local is not None:
        return _expression(m, local, InitWrite(local, None, write.conditional, write.function), obj, label)
    found = m.index.resolve(write.function.module, name)
    if isinstance(found, ClassInfo):
        return ClassValue(found)
    if isinstance(found, tuple) and isinstance(found[1].value, ast.Constant):
        return Const(found[1].value.value)
    return Unknown(label, (obj, label.rsplit(".", 1)[1]))


_NONE = ast.Constant(None)


def _handed_up(m: Interpreter, function: FunctionInfo, name: str, obj: Obj, kept_as: str) -> InitWrite | None:
    """What the object's own class hands to this constructor of a base for a parameter, where it is a literal.

    Where the call that made the object is known, what that hands to the constructor, unless other methods set the attribute as well.
    """
    if (
        isinstance(obj, Constructed)
        and obj.cls is not None
        and all(_before_hooks(write.function) for write in _all_writes(m, obj.cls, kept_as))
    ):
        literal_node = literal_argument(m, obj, function, name)
        if literal_node is not None:
            return InitWrite(literal_node, None, False, function)
    if obj.cls is None or not obj.exact or function.name != "__init__" or function.owner in (None, obj.cls):
        return None
    own = obj.cls.methods.get("__init__")
    if own is not None:
        for node in own.super_calls:
            by_name = {k.arg: k.value for k in node.keywords}
            by_place = dict(zip(function.positional[1:], node.args, strict=False))
            given = by_name.get(name, by_place.get(name))
            literal = isinstance(given, ast.Constant) or (
                isinstance(given, (ast.List, ast.Tuple)) and all(isinstance(item, ast.Constant) for item in given.elts)
            )
            return InitWrite(given, None, False, own) if literal else None
    return None


def _holds(m: Interpreter, test: ast.expr, write: InitWrite, obj: Obj, label: str) -> bool:
    """A condition inside a constructor's expression: decided where a literal decides it, else asked."""
    decided = _decided(m, test, write, obj, label)
    return decided if decided is not None else bool(m.ask(f"init {label}?", test))


def _decided(m: Interpreter, test: ast.expr, write: InitWrite, obj: Obj, label: str) -> bool | None:
    """``x is None`` and ``self.flag`` where the constructor's own literals tell."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
        right = test.comparators[0]
        if isinstance(right, ast.Constant) and right.value is None:
            left = _expression(m, test.left, write, obj, f"{label}.test")
            if isinstance(left, (Const, ListValue, Tensor, Obj)):
                return (isinstance(left, Const) and left.value is None) == isinstance(test.ops[0], ast.Is)
    elif isinstance(test, (ast.Attribute, ast.Name)):
        value = _expression(m, test, write, obj, f"{label}.test")
        if isinstance(value, Const) and isinstance(value.value, bool):
            return value.value
    return None


def _local(function: FunctionInfo, name: str) -> ast.expr | None:
    found = None
    for node in function.assignments:
        if any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            if found is not None:
                return None
            found = node.value
    return found if not isinstance(found, ast.Name) else None


def _attribute_chain(m: Interpreter, node: ast.Attribute, write: InitWrite, obj: Obj, label: str) -> Value:
    from rebindlint.execution.attributes import read

    if isinstance(node.value, ast.Name) and node.value.id == write.function.self_name:
        return read(m, obj, node.attr, node)
    found = m.index.resolve_expression(write.function.module, node)
    if isinstance(found, ClassInfo):
        return ClassValue(found)
    home = m.index.resolve_expression(write.function.module, node.value)
    if isinstance(home, ClassInfo) and m.index.is_enumeration(home) and node.attr in home.attributes:
        return Const(("enum", home.name, node.attr))
    return Unknown(label, (obj, label.rsplit(".", 1)[1]))


def _call(m: Interpreter, node: ast.Call, module: Module, obj: Obj, label: str, write: InitWrite) -> Value:
    found = m.index.resolve_expression(module, node.func)
    if isinstance(found, ClassInfo):
        if m.index.is_parameter_class(found):
            return m.weight(label, is_parameter=True)
        if m.index.is_enumeration(found):
            return Unknown(label)
        return Constructed(label, found, node, write.function, obj, is_module=m.index.is_module(found))
    if isinstance(found, FunctionInfo) and not isinstance(found.node, ast.Lambda) and found.node.returns is not None:
        return annotated(m, found.node.returns, found.module, label, node)
    if (
        isinstance(node.func, ast.Name)
        and node.func.id == "dict"
        and found is None
        and not (node.args or node.keywords)
    ):
        return DictValue({}, label)
    dotted = str(found) if isinstance(found, str) else ""
    last = dotted.rpartition(".")[2]
    if last in ("Parameter", "Buffer"):
        return m.weight(label, is_parameter=True)
    if dotted.startswith("torch.") and last in (
        "empty",
        "zeros",
        "ones",
        "full",
        "tensor",
        "arange",
        "empty_like",
        "zeros_like",
        "rand",
        "randn",
    ):
        tensor = m.fresh(f"init {label}", dtype=_dtype_keyword(node), zeroed=last.startswith("zeros"))
        tensor.storage.born = 0
        tensor.storage.empty = last in SIZED and bool(node.args) and _is_zero(node.args[0])
        tensor.storage.scratch = last.startswith("empty")
        tensor.storage.on_host = _on_host(node)
        tensor.home = label
        m.origins[tensor.storage.number] = _origin(m, write, node, tensor)
        return tensor
    return Unknown(label, (obj, label.rsplit(".", 1)[1]))


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 0


def _on_host(node: ast.Call) -> bool:
    given = {k.arg: k.value for k in node.keywords}
    device, pinned = given.get("device"), given.get("pin_memory")
    return (isinstance(device, ast.Constant) and device.value == "cpu") or (
        isinstance(pinned, ast.Constant) and pinned.value is True
    )


def _origin(m: Interpreter, write: InitWrite, node: ast.expr, tensor: Tensor) -> Site:
    """The assignment in a constructor that allocates, as the place to blame."""
    info = write.function
    key = ("statement of", id(node))
    statement: ast.AST | None = m.index.pure.get(key)
    if statement is None:
        assigned = [n for n in descend(info.node) if isinstance(n, (ast.Assign, ast.AnnAssign)) and n.value is not None]
        inside = (ast.Dict, ast.List, ast.Tuple)
        holds = (n for n in assigned if n.value is node or (isinstance(n.value, inside) and node in descend(n.value)))
        statement = m.index.pure[key] = next(holds, node)
    chain = ((info.module.shown, getattr(statement, "lineno", 0), info.qualified),)
    return Site(Binding.ATTRIBUTE, info.module, statement, info.qualified, chain, 0, tensor, None)


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
            if name not in obj.attributes and any(_constructs(w.function) and _allocates(m, w) for w in writes):
                attribute(m, obj, name, writes[0].function.node)


def _allocates(m: Interpreter, write: InitWrite) -> bool:
    value, module = write.value, write.function.module
    if isinstance(value, ast.Dict):
        return _all_allocate(m, value.values, module)
    return value is not None and _all_allocate(
        m, value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value], module
    )


def _all_allocate(m: Interpreter, nodes: Iterable[ast.expr], module: Module) -> bool:
    found = [m.index.resolve_expression(module, n.func) if isinstance(n, ast.Call) else None for n in nodes]
    return bool(found) and all(isinstance(f, str) and str(f).startswith("torch.") for f in found)


def _dtype_keyword(node: ast.Call) -> str:
    for keyword in node.keywords:
        if keyword.arg == "dtype" and isinstance(keyword.value, ast.Attribute):
            return text_of(keyword.value)
    return ""


# ---- existence


def exists(m: Interpreter, obj: Obj, name: str, node: ast.AST) -> bool:
    """``hasattr`` before the hook: constructors decide; what only hooks bind is absent; else the oracle."""
    if obj.cls is not None:
        writes = _all_writes(m, obj.cls, name)
        before = [w for w in writes if _before_hooks(w.function)]
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
        w for w in _all_writes(m, obj.cls, name) if w.function.name in ("__init__", "__post_init__", "create_weights")
    ]
    tensorish = [
        w for w in writes if w.value is not None and not (isinstance(w.value, ast.Constant) and w.value.value is None)
    ]
    if tensorish:
        obj.initial[name] = ("", 0)
    return None


_CONTAINERS = ("ModuleList", "ModuleDict", "Sequential", "Linear", "Embedding")


def is_submodule(m: Interpreter, obj: Obj, name: str, now: Value | None) -> bool:
    """Whether the attribute is a module that the constructor made, so that a checkpoint has weights for it."""
    if obj.cls is None:
        return False
    writes = [w for w in _all_writes(m, obj.cls, name) if _constructs(w.function) and isinstance(w.value, ast.Call)]
    made = isinstance(now, Obj) and now.is_module and not now.born
    for write in writes:
        assert isinstance(write.value, ast.Call)
        found = m.index.resolve_expression(write.function.module, write.value.func)
        made = made or (isinstance(found, str) and str(found).rpartition(".")[2] in _CONTAINERS)
    return bool(writes) and made
