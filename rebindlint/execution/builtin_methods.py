"""Methods of built-in values: lists, dictionaries and texts."""

from __future__ import annotations

import ast

from rebindlint.execution import attribute_writes
from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.items import key_of
from rebindlint.execution.values import (
    DELETED,
    NOTHING,
    Const,
    DictValue,
    ListValue,
    SuperValue,
    Unknown,
    Value,
    label_of,
)

__all__ = ["method"]


def method(
    m: Interpreter, receiver: Value, name: str, args: list[Value], keywords: dict[str, Value], node: ast.AST
) -> Value:
    """``receiver.name(*args)``."""
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
