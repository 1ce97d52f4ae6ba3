"""Sizes of tensors: those that allocators are given, and what stands for sizes that nobody knows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.values import Const, ListValue, Unknown, Value, is_stable, label_of

__all__ = ["given_sizes", "has_no_elements", "resized", "shape_called"]

_SHAPE = re.compile(r"shape(\d+)")


def resized(m: Interpreter, content: object) -> int:
    """The shape of a tensor with these contents which has more elements, or fewer, than what these were made from."""
    return m.terms.of("resized", content)


def has_no_elements(args: Sequence[Value], keywords: dict[str, Value]) -> bool:
    """Whether the size that an allocator is given holds a literal 0; the size ``()`` is that of one element."""
    size = keywords.get("size", args[0] if args else None)
    if isinstance(size, ListValue):
        return size.closed and any(_is_zero(item) for item in size.items)
    return isinstance(size, Const) and any(_is_zero(a) for a in args)


def _is_zero(value: Value) -> bool:
    return isinstance(value, Const) and type(value.value) is int and value.value == 0


def given_sizes(args: list[Value]) -> tuple[Value, ...]:
    """The sizes that an allocator is given, one after another or as one sequence; empty when they are not all known."""
    given = args[0].items if args and isinstance(args[0], ListValue) and args[0].closed else args
    return tuple(given) if all(isinstance(a, (Const, Unknown)) and is_stable(label_of(a)) for a in given) else ()


def shape_called(label: str) -> int | None:
    """The term of the shape that a label stands for."""
    found = _SHAPE.fullmatch(label)
    return int(found[1]) if found is not None else None
