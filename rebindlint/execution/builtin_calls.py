"""Built-in functions."""

from __future__ import annotations

import ast

from rebindlint.execution import attribute_writes, attributes, elements, promotion
from rebindlint.execution.builtin_methods import method
from rebindlint.execution.instance_checks import is_instance
from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.items import items_of
from rebindlint.execution.module_methods import module_method
from rebindlint.execution.naming import attribute_name
from rebindlint.execution.values import (
    DELETED,
    NOTHING,
    ClassValue,
    Const,
    DictValue,
    Function,
    ListValue,
    Obj,
    Partial,
    Scalar,
    Unknown,
    Value,
    is_stable,
    label_of,
)

__all__ = ["BUILTINS", "call", "method", "module_method"]

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
        return Const(is_instance(m, args[0], args[1], node))
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


def _reflect(m: Interpreter, name: str, args: list[Value], node: ast.AST) -> Value:
    target, attribute = args[0], attribute_name(args[1])
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
