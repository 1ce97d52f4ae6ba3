"""Built-in functions, methods of built-in values, the standard library, and ``nn.Module``'s own methods."""

from __future__ import annotations

import ast

from rebindlint.execution import attribute_writes, attributes, elements, promotion, tensors
from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.items import items_of, key_of
from rebindlint.execution.values import (
    DELETED,
    NOTHING,
    ClassValue,
    Const,
    DictValue,
    External,
    Function,
    ListValue,
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
from rebindlint.model import Binding

__all__ = ["BUILTINS", "call", "library", "method", "module_method"]

BUILTINS = frozenset(
    {
        "getattr",
        "setattr",
        "hasattr",
        "delattr",
        "isinstance",
        "issubclass",
        "len",
        "range",
        "enumerate",
        "zip",
        "list",
        "tuple",
        "set",
        "dict",
        "frozenset",
        "sorted",
        "reversed",
        "map",
        "filter",
        "min",
        "max",
        "sum",
        "any",
        "all",
        "int",
        "float",
        "bool",
        "str",
        "abs",
        "round",
        "print",
        "type",
        "super",
        "id",
        "callable",
        "iter",
        "next",
        "vars",
        "divmod",
        "pow",
        "repr",
        "hash",
        "slice",
        "object",
        "staticmethod",
        "classmethod",
        "property",
        "open",
        "format",
        "ord",
        "chr",
        "bytes",
        "complex",
        "dir",
        "globals",
        "locals",
        "input",
        "hex",
        "bin",
        "oct",
    }
)


def call(m: Interpreter, name: str, args: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
    if name in ("getattr", "setattr", "hasattr", "delattr") and len(args) >= 2:
        return _reflect(m, name, args, node)
    if name == "isinstance" and len(args) == 2:
        return Const(_is_instance(m, args[0], args[1], node))
    if name == "issubclass" and len(args) == 2 and isinstance(args[0], ClassValue) and isinstance(args[1], ClassValue):
        return Const(m.index.is_subclass(args[0].info, args[1].info))
    if name in ("any", "all") and len(args) == 1 and isinstance(args[0], ListValue):
        flags = [item.value for item in args[0].items if isinstance(item, Const)]
        if len(flags) == len(args[0].items) and (flags or args[0].closed):  # one item stands for those not known
            return Const(any(flags) if name == "any" else all(flags))
    if name in ("list", "tuple", "set", "sorted", "reversed", "iter", "frozenset"):
        return _sequence(m, name, args, node)
    if name == "dict":
        found = DictValue(dict(keywords.items()))
        if args and isinstance(args[0], DictValue):
            found.items = {**args[0].items, **found.items}
        return found
    if name in ("zip", "enumerate", "map", "filter", "range", "next"):
        return _iterate(m, name, args, node)
    if name == "len" and args:
        if isinstance(args[0], ListValue) and args[0].closed:
            return Const(len(args[0].items))
        return Unknown(f"len({label_of(args[0])})")
    if name in ("int", "float", "bool") and args:
        return _number(m, name, args[0], node)
    if name == "type" and len(args) == 1:
        return _type(args[0])
    if name == "callable" and args:
        return (
            Const(True)
            if isinstance(args[0], (Function, ClassValue, Partial))
            else Unknown(f"callable({label_of(args[0])})")
        )
    if name in ("min", "max", "sum", "abs", "round", "pow", "divmod"):
        return _reduce(m, name, args)
    if name == "vars" and args:
        return attributes.read(m, args[0], "__dict__", node)
    if name == "str" and args and isinstance(args[0], Const) and isinstance(args[0].value, (str, int)):
        return Const(str(args[0].value))
    if name == "print":
        return NOTHING
    inner = ",".join(label_of(a) for a in args)
    return Unknown(f"{name}({inner})")


def _attribute_name(value: Value) -> str:
    """The attribute's name; a computed one stands as its expression in braces."""
    if isinstance(value, Const) and isinstance(value.value, str):
        return value.value
    return f"{{{label_of(value)}}}"


def _reflect(m: Interpreter, name: str, args: list[Value], node: ast.AST) -> Value:
    target, attribute = args[0], _attribute_name(args[1])
    if isinstance(args[1], Unknown) and args[1].tensor is None and is_stable(args[1].label):
        m.oracle.assume(("?", f"{args[1].label} is not None", 2), 1)  # None would have been no name
    if name == "setattr" and len(args) > 2:
        attribute_writes.write(m, target, attribute, args[2])
        return NOTHING
    if name == "delattr":
        attribute_writes.delete(m, target, attribute)
        return NOTHING
    if name == "hasattr":
        return Const(attributes.has(m, target, attribute, node))
    if len(args) > 2 and not _certainly_has(target, attribute) and not attributes.has(m, target, attribute, node):
        return args[2]
    return attributes.read(m, target, attribute, node)


def _certainly_has(target: Value, name: str) -> bool:
    return isinstance(target, Obj) and name in target.attributes and target.attributes[name] is not DELETED


def _is_instance(m: Interpreter, value: Value, kind: Value, node: ast.AST) -> bool:
    if isinstance(kind, ListValue):
        return any(_is_instance(m, value, item, node) for item in kind.items)
    label = label_of(kind)
    last = label.rpartition(".")[2]
    tensor = promotion.maybe_tensor(value)
    if tensor is not None and not tensor.certain and isinstance(kind, ClassValue):
        return bool(m.ask("?", node))  # a guess only, and this may be the better one
    if (
        tensor is None
        and isinstance(value, Unknown)
        and (
            last in ("Tensor", "Parameter") or (isinstance(kind, ClassValue) and m.index.is_parameter_class(kind.info))
        )
        and m.ask(f"isinstance({value.label},{last})", node, default=1)
    ):
        tensor = promotion.as_tensor(m, value)
    if tensor is not None:
        if last == "Tensor":
            return True
        if last in ("Parameter", "Buffer") and isinstance(kind, External):
            return tensor.is_parameter
        if isinstance(kind, ClassValue) and m.index.is_parameter_class(kind.info):
            return tensor.is_parameter and bool(
                m.ask(f"isinstance({tensor.home},{last})" if tensor.home else "?", node, default=1)
            )
        return False
    if isinstance(value, Const):
        kinds = {"int": int, "float": float, "str": str, "bool": bool}
        return last in kinds and isinstance(value.value, kinds[last])
    if isinstance(value, ListValue):
        return last in ("list", "tuple", "Sequence", "Iterable")
    if isinstance(value, DictValue):
        return last in ("dict", "Mapping")
    if isinstance(value, Obj) and isinstance(kind, ClassValue):
        return _object_is(m, value, kind, node)
    answer = bool(m.ask(f"isinstance({label_of(value)},{label})", node))
    if last == "Parameter" and not answer and isinstance(value, Unknown) and value.home is not None and m.run == 1:
        value.home[0].plain.add(value.home[1])
    if answer and isinstance(value, Unknown) and isinstance(kind, ClassValue):
        obj = promotion.as_object(m, value)
        if obj is not None and obj.cls is None:
            obj.cls, obj.is_module = kind.info, m.index.is_module(kind.info)
    return answer


def _object_is(m: Interpreter, value: Obj, kind: ClassValue, node: ast.AST) -> bool:
    if value.cls is not None and m.index.is_subclass(value.cls, kind.info):
        return True
    if value.cls is not None and value.exact:
        return False
    if value.cls is not None and not m.index.is_subclass(kind.info, value.cls) and not _is_open(m, value):
        return False
    answer = bool(m.ask(f"isinstance({value.label},{kind.info.name})", node))
    if answer and value.cls is None:
        value.cls = kind.info
        value.is_module = value.is_module or m.index.is_module(kind.info)
    return answer


def _is_open(m: Interpreter, value: Obj) -> bool:
    """Mixins: a subclass of the bound may also be of the asked kind."""
    return value.cls is not None and not value.exact and value.is_module


def _sequence(m: Interpreter, name: str, args: list[Value], node: ast.AST) -> Value:
    if not args:
        return ListValue([])
    known = elements.listed(m, args[0]) if name in ("list", "tuple", "sorted") else None
    if known is not None:
        return known
    if isinstance(args[0], Unknown) and name in ("list", "tuple", "sorted"):
        return (
            Unknown(f"{name}({args[0].label})")
            if args[0].tensor is None
            else ListValue(items_of(m, args[0], node)[0], closed=False)
        )
    items, closed = items_of(m, args[0], node)
    return ListValue(list(reversed(items)) if name == "reversed" else list(items), closed)


def _iterate(m: Interpreter, name: str, args: list[Value], node: ast.AST) -> Value:
    from rebindlint.execution import calls

    if name == "range":
        numbers = [a.value for a in args if isinstance(a, Const) and isinstance(a.value, int)]
        if len(numbers) == len(args) and args and len(found := range(*numbers)) <= 8:
            return ListValue([Const(i) for i in found])
        return ListValue([Unknown(f"range({','.join(label_of(a) for a in args)})[*]")], closed=False)
    if name == "zip":
        columns = [items_of(m, a, node) for a in args]
        return ListValue(
            [ListValue(list(row)) for row in zip(*[c[0] for c in columns], strict=False)], all(c[1] for c in columns)
        )
    if name == "next":
        items, _ = items_of(m, args[0], node) if args else ([], True)
        return items[0] if items else Unknown("next")
    items, closed = (
        items_of(m, args[1] if name in ("map", "filter") and len(args) > 1 else args[0], node) if args else ([], True)
    )
    if name == "map":
        return ListValue([calls.call(m, args[0], [item], {}, node) for item in items], closed)
    if name == "filter":
        return ListValue(items, closed=False)
    return ListValue(
        [ListValue([Const(i) if closed else Unknown("index"), item]) for i, item in enumerate(items)], closed
    )


def _number(m: Interpreter, name: str, value: Value, node: ast.AST) -> Value:
    tensor = promotion.maybe_tensor(value)
    if name == "bool" and (tensor is not None or isinstance(value, Scalar)):
        return Unknown(f"bool@{m.place(node)}")  # a yes or no, decided as a condition on it would be
    if tensor is not None:
        return m.number(name, tensor)
    if isinstance(value, Const) and isinstance(value.value, (int, float)):
        try:
            return Const({"int": int, "float": float, "bool": bool}[name](value.value))
        except (ValueError, OverflowError):
            return Unknown(name)
    if isinstance(value, Scalar):
        return value
    return Unknown(f"{name}({label_of(value)})")


def _type(value: Value) -> Value:
    tensor = promotion.maybe_tensor(value)
    if tensor is not None:
        return Const(("type", tensor.type_name or ("Parameter" if tensor.is_parameter else "Tensor")))
    if isinstance(value, Obj) and value.cls is not None and value.exact:
        return ClassValue(value.cls)
    return Unknown(f"type({label_of(value)})", made_from=("type", [value]))


def _reduce(m: Interpreter, name: str, args: list[Value]) -> Value:
    if any(promotion.maybe_tensor(a) is not None for a in args):
        return m.fresh(name, args)
    numbers = [a.value for a in args if isinstance(a, Const) and isinstance(a.value, (int, float))]
    if name in ("min", "max") and len(numbers) == len(args) > 1:
        return Const(min(numbers) if name == "min" else max(numbers))
    if any(isinstance(a, Scalar) for a in args):
        return Scalar(name, m.epochs(args), m.terms.of(name, *[m.term(a) for a in args]), m.sources(args))
    return Unknown(f"{name}({','.join(label_of(a) for a in args)})")


# ---- standard library


def library(m: Interpreter, label: str, args: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value | None:
    """Functions of the standard library that move values around; None for every other."""
    last = label.rpartition(".")[2]
    if last in ("partial", "partialmethod") and args:
        return Partial(args[0], args[1:], keywords)
    if label in ("copy.copy", "copy.deepcopy") and args:
        tensor = promotion.as_tensor(m, args[0]) if not isinstance(args[0], Obj) else None
        if isinstance(args[0], Obj):
            return _copied_object(m, args[0])
        if tensor is None:
            return args[0]
        if last == "deepcopy":
            return tensors.method(m, tensor, "clone", [], {}, node)
        shallow = tensor.alias()
        shallow.is_parameter, shallow.type_name, shallow.attributes = (
            tensor.is_parameter,
            tensor.type_name,
            dict(tensor.attributes),
        )
        return shallow
    if last == "__setattr__" and len(args) >= 3:
        attribute_writes.write(m, args[-3], _attribute_name(args[-2]), args[-1])
        return NOTHING
    if last in ("cast", "wraps", "ensure_future") and args:
        return args[-1]
    if last in ("tqdm", "chain", "track", "islice") and args:
        return args[0]
    if last in ("WeakKeyDictionary", "OrderedDict", "defaultdict", "WeakValueDictionary"):
        return DictValue()
    if last == "SimpleNamespace":
        obj = Obj("SimpleNamespace()", born=max(m.run, 1))
        obj.attributes.update(keywords)
        return obj
    if label.startswith(("logging.", "warnings.", "time.", "os.", "gc.", "math.", "json.", "re.")):
        inner = ",".join(label_of(a) for a in args)
        return Unknown(f"{label}({inner})") if is_stable(inner) else Unknown(f"{label}()")
    return None


def _copied_object(m: Interpreter, obj: Obj) -> Obj:
    """A shallow copy: other attributes from now on, the same tensors in them."""
    found = Obj(f"{obj.label}~", obj.cls, is_module=obj.is_module, exact=obj.exact, born=max(m.run, 1))
    found.attributes, found.registered, found.initial = dict(obj.attributes), set(obj.registered), dict(obj.initial)
    m.keep.append(found)
    return found


# ---- methods of built-in values


def method(
    m: Interpreter, receiver: Value, name: str, args: list[Value], keywords: dict[str, Value], node: ast.AST
) -> Value:
    if isinstance(receiver, ListValue):
        return _list_method(m, receiver, name, args)
    if isinstance(receiver, DictValue):
        return _dict_method(m, receiver, name, args, keywords)
    if isinstance(receiver, SuperValue):
        return NOTHING
    if isinstance(receiver, Const) and isinstance(receiver.value, str):
        return _text_method(receiver.value, name, args)
    return Unknown(f"{label_of(receiver)}.{name}({','.join(label_of(a) for a in args)})")


def _list_method(m: Interpreter, receiver: ListValue, name: str, args: list[Value]) -> Value:
    if name in ("append", "add") and args:
        receiver.items.append(args[0])
        attribute_writes.note_slot(m, receiver, len(receiver.items) - 1, args[0], None)
        return NOTHING
    if name in ("extend", "update") and args and isinstance(args[0], ListValue):
        receiver.items.extend(args[0].items)
        return NOTHING
    if name == "clear":
        receiver.items.clear()
        receiver.closed = True
        return NOTHING
    if name == "pop":
        return receiver.items.pop() if receiver.items else Unknown("pop")
    if name == "copy":
        return ListValue(list(receiver.items), receiver.closed)
    return Unknown(f"list.{name}({','.join(label_of(a) for a in args)})")


def _dict_method(
    m: Interpreter, receiver: DictValue, name: str, args: list[Value], keywords: dict[str, Value]
) -> Value:
    live = {k: v for k, v in receiver.items.items() if v is not DELETED}
    if name == "items":
        return ListValue([ListValue([Const(k), v]) for k, v in live.items()], receiver.closed)
    if name == "values":
        return ListValue(list(live.values()), receiver.closed)
    if name == "keys":
        return ListValue([Const(k) for k in live], receiver.closed)
    if name in ("get", "pop", "setdefault") and args:
        key = key_of(args[0])
        if key in live:
            return receiver.items.pop(key) if name == "pop" else live[key]
        default = args[1] if len(args) > 1 else NOTHING
        if name == "setdefault":
            receiver.items[key] = default
            attribute_writes.note_slot(m, receiver, key, default, None)
        elif not receiver.closed and not m.ask(
            f"{label_of(args[0])} in {receiver.label}", m.frame.statement, default=0
        ):
            return default
        elif not receiver.closed:
            return Unknown(f"{receiver.label}[{label_of(args[0])}]")
        return default
    if name == "update":
        if args and isinstance(args[0], DictValue):
            receiver.items.update(args[0].items)
        receiver.items.update(keywords)
        return NOTHING
    if name == "clear":
        for key, old in live.items():
            attribute_writes.note_slot(m, receiver, key, NOTHING, old)
        receiver.items.clear()
        return NOTHING
    if name == "copy":
        return DictValue(dict(live), receiver.label, receiver.closed)
    return Unknown(f"dict.{name}")


def _text_method(text: str, name: str, args: list[Value]) -> Value:
    values = [a.value for a in args if isinstance(a, Const)]
    if len(values) == len(args) and name in (
        "startswith",
        "endswith",
        "replace",
        "upper",
        "lower",
        "strip",
        "removeprefix",
        "removesuffix",
        "split",
    ):
        try:
            found = getattr(text, name)(*values)
        except (TypeError, ValueError):
            return Unknown(f"str.{name}")
        return ListValue([Const(part) for part in found]) if isinstance(found, list) else Const(found)
    return Unknown(f"{text!r}.{name}({','.join(label_of(a) for a in args)})")


# ---- nn.Module


def module_method(
    m: Interpreter, obj: Obj, name: str, args: list[Value], keywords: dict[str, Value], node: ast.AST
) -> Value:
    """Methods that every ``nn.Module`` has."""
    if name in ("register_parameter", "register_buffer") and (args or "name" in keywords):
        key = _attribute_name(args[0] if args else keywords["name"])
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
        attribute_writes.write(m, obj, _attribute_name(args[0]), args[1])
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
        return attributes.read(m, obj, _attribute_name(args[0]), node)
    if name in ("to", "cuda", "cpu", "half", "float", "eval", "train", "requires_grad_", "apply", "type"):
        return obj
    if name in ("modules", "children", "named_modules", "named_children"):
        child = promotion.element_of(m, Unknown(f"{obj.label}.modules()", (obj, "modules()")), "*")
        return ListValue([ListValue([Unknown("name"), child]) if name.startswith("named") else child], closed=False)
    return Unknown(f"{obj.label}.{name}({','.join(label_of(a) for a in args)})")
