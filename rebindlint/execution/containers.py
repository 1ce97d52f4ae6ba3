"""What containers tell of the tensors in them: weight loaders fill some after every load, all layers of one shape share others."""

from __future__ import annotations

import re

from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.values import SECOND, DictValue, ListValue, Tensor, Value

__all__ = ["fill_containers", "is_key_by_shape", "put_by_shape"]

_SHAPE = re.compile(r"\bshape\d+")


def is_key_by_shape(key: object) -> bool:
    """Whether it is, or contains, the shape of a tensor: every layer of that shape shares the slot."""
    return _SHAPE.search(str(key)) is not None


def put_by_shape(value: Value) -> None:
    """What goes into such a slot holds nothing of any weight, whatever it was computed from."""
    if isinstance(value, Tensor):
        if value.storage.born and not value.storage.weight:
            value.storage.epochs, value.storage.sources = 0, frozenset()
    elif isinstance(value, (ListValue, DictValue)):
        for item in value.items.values() if isinstance(value, DictValue) else value.items:
            put_by_shape(item)


def fill_containers(m: Interpreter, parameter: Tensor) -> None:
    """Put what a loader appends back into the empty lists that hang on a parameter; how much that is, nobody knows."""
    for name, value in parameter.attributes.items():
        if isinstance(value, ListValue) and value.closed and not value.items and _is_filled(m, name):
            shard = m.weight(f"{parameter.home}.{name}[*]", is_parameter=False)
            if m.run:
                shard.storage.epochs = SECOND
            value.items.append(shard)
            value.closed = False


def _is_filled(m: Interpreter, name: str) -> bool:
    """Whether a weight loader of the tree appends to ``parameter.name``, by the text of the files that have one."""
    key = ("filled by loaders", name)
    known: bool | None = m.index.pure.get(key)
    if known is None:
        needle = f".{name}.append(".encode()
        known = m.index.pure[key] = any(needle in raw and b"weight_loader" in raw for raw in m.index.bytes.values())
    return known
