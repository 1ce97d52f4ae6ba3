"""Watching a reload: who rebinds what, on which line, and which memory it takes without writing it.

`Watch` is a context manager around the host's reload. While it is open it wraps ``__setattr__`` of the host's classes
that the census saw on the way to tensors, modules among them, how ``nn.Module`` registers, the ``data`` descriptor of
tensors, their ``set_`` and ``torch.utils.swap_tensors``; torch's factories of uninitialised memory fill it (`Filling`).
On exit, also after an exception, every patched attribute is as it was. Nothing in here raises into the host, and no
event keeps a tensor: storages are named by number and weakly referenced.

Not seen: writes to ``__dict__``, ``_parameters[...]`` and containers, ``object.__setattr__``, and plain attributes of
modules of classes that come with the reload. The census finds what they did, without a line.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any, Final, NamedTuple

import torch

from rebindlint.runtime.filling import Filling, Junk
from rebindlint.runtime.patches import patched
from rebindlint.runtime.sites import RawSite, entering_frame, raw_sites
from rebindlint.runtime.storages import WeakStorages, storage_of

__all__ = ["Event", "Watch"]

_DEPTH: Final = 6  # frames kept of an event's call chain
_PLAIN: Final = frozenset((bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.Size))
# From Python 3.13 on a class whose attributes changed a thousand times is never cached again, and slower for good.
_LIMIT: Final = 400 if sys.version_info >= (3, 13) else None  # watches that patch, each of which changes twice
_ONE_AT_A_TIME: Final = threading.Lock()
_MODULE_SETATTR: Final = torch.nn.Module.__setattr__.__code__


_patching = itertools.count()  # watches of this process that patched


class Event(NamedTuple):  # made in the host's reload, where a dataclass would cost twice as much
    """Something was bound: ``key`` of the object ``owner_id`` (``data``: to the tensor itself), to a tensor on
    storage ``number``.

    ``number`` is 0 when what was bound is no tensor (an object, None, a deletion).
    """

    kind: str  # setattr, delattr, register_parameter, register_buffer, data, set_, swap_tensors
    owner_id: int
    owner_class: str
    key: str
    number: int
    value_id: int
    parameter: bool
    chain: tuple[RawSite, ...]  # innermost first


class Watch:
    """``classes`` get their ``__setattr__`` watched; without a module class among them all modules are. That is dearer:
    a change of ``nn.Module`` makes the interpreter forget what it knows of hundreds of classes. ``blame`` off leaves
    only the filling of uninitialised memory (``junk``).
    """

    def __init__(self, classes: Iterable[type] = (), *, blame: bool = True, junk: bool = True) -> None:
        self.events: list[Event] = []
        self._lost = 0
        self.refused = ""  # why nothing could be watched, "" when it was
        self.without_lines = False  # too many watches have patched already
        seen = list(classes) if blame else []
        self._classes = [cls for cls in seen if _watchable(cls)]
        modules = [cls for cls in seen if issubclass(cls, torch.nn.Module)]
        # bases come last, so that what a class inherits is not wrapped twice
        self._modules = tuple(sorted(modules, key=lambda cls: -len(cls.__mro__))) or (torch.nn.Module,)
        self._blame = blame
        self._filling = Filling() if junk else None
        self._weak = WeakStorages()
        self._undo = contextlib.ExitStack()
        self._entered: FrameType | None = None  # call chains end where the reload was entered; only kept while it runs

    @property
    def junk(self) -> list[Junk]:
        """The allocations that were filled."""
        return self._filling.junk if self._filling is not None else []

    @property
    def lost(self) -> int:
        """Events that could not be noted, and allocations that could not be filled."""
        return self._lost + (self._filling.lost if self._filling is not None else 0)

    def __enter__(self) -> Watch:
        if not _ONE_AT_A_TIME.acquire(blocking=False):
            self.refused = "another reload is being watched in this process"
            return self
        self._undo.callback(_ONE_AT_A_TIME.release)
        self._entered = entering_frame(sys._getframe(1))
        try:
            patches = self._blame or self._filling is not None
            once_too_often = _LIMIT is not None and patches and next(_patching) >= _LIMIT
            self.without_lines = self._blame and once_too_often
            if self._blame and not once_too_often:
                for patch in self._patches():
                    self._undo.enter_context(patch)
            if self._filling is not None:
                self._undo.enter_context(self._filling.wrapped(methods=not once_too_often))
        except BaseException:
            self._undo.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._entered = None  # a frame keeps its variables
        self._undo.close()

    def _patches(self) -> Iterator[contextlib.AbstractContextManager[None]]:
        for cls in self._modules:
            yield patched(cls, "__setattr__", self._setattr, inherited=True)
            yield patched(cls, "__delattr__", self._deleter, inherited=True)
        yield patched(torch.nn.Module, "register_parameter", self._registrar("register_parameter"))
        yield patched(torch.nn.Module, "register_buffer", self._registrar("register_buffer"))
        yield patched(torch.Tensor, "data", self._data_property, inherited=True)
        yield patched(torch.Tensor, "set_", self._storage_setter, inherited=True)
        yield patched(torch.utils, "swap_tensors", self._swapper)
        for cls in self._classes:
            yield patched(cls, "__setattr__", self._setattr, inherited=True)

    def _setattr(self, original: Any) -> Any:
        note = self._note

        @functools.wraps(original)
        def watched(owner: Any, name: str, value: Any) -> Any:
            if type(value) not in _PLAIN:
                note("setattr", owner, name, value)
            return original(owner, name, value)

        @functools.wraps(original)
        def watched_by_keyword(owner: Any, *args: Any, **kwargs: Any) -> Any:
            name, value, *_ = *args, *kwargs.values(), "", None
            if type(value) not in _PLAIN:
                note("setattr", owner, name, value)
            return original(owner, *args, **kwargs)

        # the host's own may name its parameters otherwise; the slot and torch's do not
        code = getattr(original, "__code__", None)
        fixed = code is None or code.co_varnames[1:3] == ("name", "value")
        return watched if fixed else watched_by_keyword

    def _registrar(self, kind: str) -> Callable[[Any], Any]:
        note, noted_before = self._note, self._noted_as_setattr

        def wrap(original: Any) -> Any:
            @functools.wraps(original)
            def watched(owner: Any, name: str, *args: Any, **kwargs: Any) -> Any:
                if sys._getframe(1).f_code is not _MODULE_SETATTR or not noted_before(owner):
                    note(kind, owner, name, args[0] if args else next(iter(kwargs.values()), None))
                return original(owner, name, *args, **kwargs)

            return watched

        return wrap

    def _noted_as_setattr(self, owner: Any) -> bool:
        return isinstance(owner, self._modules)

    def _deleter(self, original: Any) -> Any:
        @functools.wraps(original)
        def watched(owner: Any, name: str) -> Any:
            self._note("delattr", owner, name, None)
            return original(owner, name)

        return watched

    def _data_property(self, original: Any) -> Any:
        def assign(tensor: torch.Tensor, value: Any) -> None:
            self._note("data", tensor, "data", value)
            original.__set__(tensor, value)

        return property(original.__get__, assign, getattr(original, "__delete__", None), original.__doc__)

    def _storage_setter(self, original: Any) -> Any:
        @functools.wraps(original)
        def watched(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            result = original(tensor, *args, **kwargs)
            self._note("set_", tensor, "data", tensor)
            return result

        return watched

    def _swapper(self, original: Any) -> Any:
        @functools.wraps(original)
        def watched(t1: torch.Tensor, t2: torch.Tensor) -> Any:
            self._note("swap_tensors", t1, "data", t2)
            self._note("swap_tensors", t2, "data", t1)
            return original(t1, t2)

        return watched

    def _note(self, kind: str, owner: Any, key: str, value: Any) -> None:
        try:
            number, parameter = 0, False
            if value is not None and isinstance(value, torch.Tensor):
                storage = storage_of(value)
                number = self._weak.add(storage) if storage is not None else 0
                # asking a tensor that is no parameter runs Python code of torch's
                parameter = type(value) is torch.nn.Parameter or isinstance(value, torch.nn.Parameter)
            chain = raw_sites(sys._getframe(2), _DEPTH, self._entered)
            self.events.append(
                Event(kind, id(owner), type(owner).__qualname__, key, number, id(value), parameter, chain)
            )
        except Exception:  # a guest in the host's reload: what cannot be noted is counted, never raised
            self._lost += 1


def _watchable(cls: type) -> bool:
    """Classes written in Python by the host whose ``__setattr__`` may be replaced and is worth it."""
    package = (cls.__module__ or "").partition(".")[0] if isinstance(cls.__module__, str) else ""
    if issubclass(cls, (torch.nn.Module, torch.Tensor)) or package in ("torch", "builtins", *sys.stdlib_module_names):
        return False
    frozen = getattr(getattr(cls, "__dataclass_params__", None), "frozen", False)
    heap_type = bool(cls.__flags__ & (1 << 9))
    return heap_type and not frozen and not issubclass(cls, tuple)
