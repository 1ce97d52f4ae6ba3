"""Where a tensor lies in its storage: what code asks that packs several tensors into one storage unless they are packed already."""

from __future__ import annotations

from rebindlint.execution.values import Tensor, Unknown, Value

__all__ = ["kept_offset", "place"]

_OFFSET = "offset in storage"


def place(tensor: Tensor, method: str) -> Value | None:
    """What ``untyped_storage()`` and ``storage_offset()`` give; None for every other method."""
    if method in ("untyped_storage", "storage"):
        whole = tensor.alias()
        whole.path = 0
        return whole
    if method == "storage_offset" and tensor.storage.born:
        return Unknown(f"{_OFFSET} {tensor.storage.number}")
    return None


def kept_offset(left: Value, right: Value) -> Value | None:
    """An offset plus or minus a size is the offset of another view of that storage: views stay where the hook cut them out."""
    for value in (left, right):
        if isinstance(value, Unknown) and value.label.startswith(_OFFSET):
            return value
    return None
