"""Filling memory that a reload allocates without a value, so that what it forgets to write shows as NaN.

Only torch's own factories of such memory are wrapped, where Python looks them up: everything else that a reload does
costs what it did. (A dispatch mode would see every operator, and made small reloads half as dear again.)

Not seen: ``torch.Tensor(size)`` and its kin (``torch.FloatTensor``), a factory that the host took out of torch's
namespace before the watch (``from torch import empty``), ``torch.ops.aten.empty`` called by that name, ``resize_``, and
what native code, TorchScript and graphs that are compiled already allocate for themselves.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import BuiltinFunctionType, MethodDescriptorType, MethodType
from typing import Any, Final

import torch

from rebindlint.runtime.patches import patched
from rebindlint.runtime.sites import RawSite, raw_sites
from rebindlint.runtime.storages import WeakStorages, fill_ones, is_wrapper, storage_of

__all__ = ["Filling", "Junk"]

_FUNCTIONS: Final = ("empty", "empty_strided", "empty_like", "empty_permuted")
_METHODS: Final = ("new_empty", "new_empty_strided")  # of tensors
_DEPTH: Final = 3  # frames kept of an allocation's call chain


@dataclass(frozen=True, slots=True)
class Junk:
    """An allocation that was filled with NaN bytes, and where the host made it."""

    number: int
    nbytes: int
    chain: tuple[RawSite, ...]


class Filling:
    """While `wrapped` is open every floating-point allocation that nobody has written yet is filled with ``0xFF``, in
    whichever thread.

    That cannot change a correct reload, because uninitialised memory may hold anything. Integers are left alone: they
    may be indices or handles.
    """

    def __init__(self) -> None:
        self.junk: list[Junk] = []
        self.lost = 0  # allocations that could not be filled
        self._weak = WeakStorages()

    @contextlib.contextmanager
    def wrapped(self, *, methods: bool) -> Iterator[None]:
        """``methods`` off leaves the class of tensors as it is: what ``new_empty`` gives is not filled."""
        global _open
        with contextlib.ExitStack() as stack:
            for name in _FUNCTIONS:
                stack.enter_context(patched(torch, name, _factory))
            for name in _METHODS if methods else ():
                stack.enter_context(patched(torch.Tensor, name, _factory, inherited=True))
            _open = self
            try:
                yield
            finally:
                _open = None

    def fill(self, tensor: Any) -> None:
        """Called by a wrapped factory; never raises."""
        try:
            if not isinstance(tensor, torch.Tensor) or is_wrapper(type(tensor)):
                return
            storage = storage_of(tensor)
            if storage is not None and storage.nbytes() and fill_ones(tensor):
                self.junk.append(Junk(self._weak.add(storage), storage.nbytes(), raw_sites(sys._getframe(2), _DEPTH)))
        except Exception:  # a guest in the host's reload: what cannot be filled is counted
            self.lost += 1


_open: Filling | None = None  # only one watch at a time


class _Factory:
    """Stands for a factory of torch, and outlives the watch where the host or a compiler keeps it: then it passes
    through. It equals what it stands for, because torch and its compiler keep tables of functions that they make when
    they need them first, which may be now.
    """

    def __init__(self, original: Any) -> None:
        self._original = original
        self._hash = hash(original)
        self.__name__ = self.__qualname__ = original.__name__
        self.__doc__ = original.__doc__
        self.__module__ = getattr(original, "__module__", None) or "torch"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = self._original(*args, **kwargs)
        filling = _open
        if filling is not None and "out" not in kwargs and not torch.compiler.is_compiling():
            filling.fill(result)
        return result

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self if owner is None or isinstance(self._original, BuiltinFunctionType) else MethodType(self, owner)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return other is self or bool(self._original == other)

    def __repr__(self) -> str:
        return repr(self._original)

    def __reduce__(self) -> str:  # pickle finds it by name, and later torch's own
        return str(self.__name__)


_factories: dict[Any, _Factory] = {}  # of torch's own: one each, because compiled code is guarded by identity


def _factory(original: Any) -> _Factory:
    if not isinstance(original, (BuiltinFunctionType, MethodDescriptorType)):
        return _Factory(original)  # the host has put something of its own there
    known = _factories.get(original)
    if known is None:
        known = _factories[original] = _Factory(original)
        _known_to_torchscript(original, known)
    return known


def _known_to_torchscript(original: Any, factory: _Factory) -> None:
    """Its table goes by identity; a script that is compiled now would otherwise be refused."""
    builtins: Any = torch.jit._builtins
    with contextlib.suppress(AttributeError):
        if operator := builtins._find_builtin(original):
            builtins._register_builtin(factory, operator)
