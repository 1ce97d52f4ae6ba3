"""Storages: how they are named, who owns them, what their bytes are.

A tensor's address says little: a freed address comes back at once for the next allocation of the same size. What
names a storage exactly is its number, the address of its ``StorageImpl``, as long as somebody holds an alias of it or
a weak reference to it (`WeakStorages`): until then the number is not given to another storage. The number stays when
``resize_`` moves the memory, so the memory's address is kept beside it.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import sys
from collections.abc import Iterable
from typing import Any, Final

import torch

__all__ = [
    "SavedBytes",
    "WeakStorages",
    "alias",
    "digest",
    "fill_ones",
    "is_wrapper",
    "may_be_changed",
    "nan_fractions",
    "only_owner",
    "ownership_is_provable",
    "storage_bytes",
    "storage_of",
    "torch_allocated",
]

_ONES: Final = 0xFF  # NaN in every IEEE-like float format, in float8_e4m3fn, float8_e5m2 and float8_e8m0
_ONES_FNUZ: Final = 0x80  # the only NaN of the *fnuz formats, where 0xFF is a finite number
_CHUNK: Final = 1 << 22  # elements of a device checksum handled at once


_wrappers: dict[type, bool] = {}


def is_wrapper(kind: type) -> bool:
    """Is this a tensor class that wraps other tensors and has no memory of its own (DTensor, quantized subclasses)?"""
    known = _wrappers.get(kind)
    if known is None:
        known = getattr(kind, "__torch_dispatch__", None) is not torch._C._disabled_torch_dispatch_impl
        _wrappers[kind] = known
    return known


def storage_of(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    """The tensor's storage; None where it has none of its own (sparse, nested and wrapping tensors)."""
    if is_wrapper(type(tensor)):
        return None
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return None


def alias(tensor: torch.Tensor) -> torch.Tensor:
    """A new tensor over the same storage: holds the memory, not the tensor, so that owners stay countable."""
    with torch._C.DisableTorchFunctionSubclass():
        return tensor.detach()


class WeakStorages:
    """Names storages by number without keeping their memory, and knows later which of them were freed."""

    __slots__ = ("_free", "_numbers")

    def __init__(self) -> None:
        self._numbers: set[int] = set()
        self._free: Any = (
            torch.UntypedStorage._free_weak_ref
        )  # torch may be gone before this object at interpreter exit

    def add(self, storage: torch.UntypedStorage) -> int:
        number: int = storage._cdata
        if number not in self._numbers:
            storage._weak_ref()
            self._numbers.add(number)
        return number

    def freed(self, number: int) -> bool:
        """Has the storage of that number, added before, lost its last owner?"""
        if number not in self._numbers:
            raise KeyError(number)
        expired: Any = torch.UntypedStorage._expired
        return bool(expired(number))

    def __len__(self) -> int:
        return len(self._numbers)

    def __del__(self) -> None:
        for number in self._numbers:
            self._free(number)


def _references(tensor: torch.Tensor) -> tuple[int, int]:
    """How many tensors (and the storage's own Python object) hold the storage; how many names hold that Python
    object.
    """
    storage = tensor.untyped_storage()
    return int(torch._C._storage_Use_Count(storage._cdata)), sys.getrefcount(storage)


@functools.cache
def _baseline() -> tuple[int, int] | None:
    """What `_references` gives beyond the tensors themselves; None when this torch does not count as expected."""
    if not hasattr(torch._C, "_storage_Use_Count"):
        return None
    probe = torch.empty(1)
    alone = _references(probe)
    second = alias(probe)
    together = _references(probe)
    del second
    again = _references(probe)
    if together[0] - alone[0] != 1 or again != alone:
        return None
    return alone[0] - 1, alone[1]


def ownership_is_provable() -> bool:
    """Does this torch let us count a storage's owners exactly?"""
    return _baseline() is not None


def only_owner(tensor: torch.Tensor, held: int) -> bool:
    """Are the ``held`` aliases that we made, of which ``tensor`` is one, all that keeps the storage?

    False whenever it cannot be proven.
    """
    baseline = _baseline()
    if baseline is None:
        return False
    owners, names = _references(tensor)
    return owners - baseline[0] == held and names == baseline[1]


def torch_allocated(tensor: torch.Tensor) -> bool:
    """Did torch's own allocator make the memory for this process alone? Else a file, an array, or another process may
    own it too.
    """
    storage = tensor.untyped_storage()
    if storage.device.type == "cpu" and storage.is_shared():
        return False
    return bool(storage.resizable())


def may_be_changed(tensor: torch.Tensor) -> bool:
    """May the bytes be changed for a moment? Not when they are read-only, in a file, or seen by other processes."""
    if torch_allocated(tensor):
        return True
    storage = tensor.untyped_storage()
    return storage.device.type == "cpu" and _is_private_mapping(storage.data_ptr(), storage.nbytes())


def _is_private_mapping(address: int, nbytes: int) -> bool:
    """Linux only: do writable private mappings cover the range? False where that cannot be known."""
    reached = address
    try:
        with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
            for line in maps:
                bounds, rights = line.split(maxsplit=2)[:2]
                start, end = (int(bound, 16) for bound in bounds.split("-"))
                if start <= reached < end:
                    if rights[1] != "w" or rights[3] != "p":
                        return False
                    reached = end
                if reached >= address + nbytes:
                    return True
    except (OSError, ValueError):
        return False
    return False


def storage_bytes(storage: torch.UntypedStorage) -> torch.Tensor:
    """The whole storage as a flat tensor of bytes, sharing its memory."""
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def fill_ones(tensor: torch.Tensor) -> bool:
    """Fill the tensor's whole storage with a byte that reads as NaN; False, and nothing written, unless it holds
    floats.
    """
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.is_meta:
        return False
    byte = _ONES_FNUZ if "fnuz" in str(tensor.dtype) else _ONES
    storage = tensor.untyped_storage()
    if storage.device.type == "cpu":
        ctypes.memset(storage.data_ptr(), byte, storage.nbytes())
    else:
        storage_bytes(storage).fill_(byte)
    return True


class SavedBytes:
    """The bytes of some storages, to be put back as often as needed. Storages are kept by the aliases given."""

    def __init__(self, tensors: Iterable[torch.Tensor]) -> None:
        self._saved: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        for tensor in tensors:
            storage = tensor.untyped_storage()
            if storage._cdata not in self._saved and not tensor.is_meta:
                self._saved[storage._cdata] = (tensor, storage_bytes(storage).clone())

    def restore(self) -> None:
        for tensor, content in self._saved.values():
            storage = tensor.untyped_storage()
            if storage.nbytes() == content.numel():  # else somebody resized it meanwhile: nothing to put back into
                storage_bytes(storage).copy_(content)


def digest(tensor: torch.Tensor, limit: int) -> str | None:
    """A short hash of the tensor's values in logical order; None when there are no bytes or more than ``limit``."""
    size = tensor.numel() * tensor.element_size()
    if tensor.is_meta or size > limit:
        return None
    if size == 0:
        return "empty"
    plain = alias(tensor)
    if plain.is_conj() or plain.is_neg():
        plain = plain.resolve_conj().resolve_neg()
    flat = plain.contiguous().reshape(-1)
    if flat.device.type == "cpu":
        view = (ctypes.c_ubyte * size).from_address(flat.data_ptr())
        return hashlib.blake2b(memoryview(view), digest_size=10).hexdigest()
    return _device_checksum(flat)


def nan_fractions(tensor: torch.Tensor) -> tuple[float, float] | None:
    """Which fraction of the elements is NaN, and which consists of the bytes that `fill_ones` writes; None when there
    is no NaN.
    """
    if not tensor.is_floating_point() or tensor.numel() == 0 or tensor.is_meta:
        return None
    try:
        bad = int(tensor.isnan().sum())
    except (NotImplementedError, RuntimeError):  # types without arithmetic, such as packed four-bit floats
        return None
    if not bad:
        return None
    byte = _ONES_FNUZ if "fnuz" in str(tensor.dtype) else _ONES
    raw = alias(tensor).contiguous().reshape(-1).view(torch.uint8).reshape(tensor.numel(), -1)
    return bad / tensor.numel(), int((raw == byte).all(dim=1).sum()) / tensor.numel()


def _device_checksum(flat: torch.Tensor) -> str:
    """Two 64-bit sums over the bytes, one weighted by position, computed where the tensor lives."""
    raw = flat.view(torch.uint8)
    plain: Any = 0
    weighted: Any = 0
    for start in range(0, raw.numel(), _CHUNK):
        part = raw[start : start + _CHUNK].to(torch.int64)
        index = torch.arange(start, start + part.numel(), device=raw.device, dtype=torch.int64)
        plain = plain + part.sum()
        weighted = weighted + (part * (index * 2654435761 + 97)).sum()
    return f"{int(plain) & (1 << 64) - 1:016x}{int(weighted) & (1 << 64) - 1:016x}"
