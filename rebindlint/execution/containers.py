"""Containers on parameters that weight loaders fill: they are full again after every load."""

from __future__ import annotations

from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.values import SECOND, ListValue, Tensor

__all__ = ["fill_containers"]


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
