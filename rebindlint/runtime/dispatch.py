"""The dispatch mode that sits under a reload and fills uninitialised memory, so that forgotten memory shows as NaN."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rebindlint.runtime.sites import RawSite, raw_sites
from rebindlint.runtime.storages import WeakStorages, fill_ones, is_wrapper, storage_of

__all__ = ["Junk", "JunkMode"]

_ALLOCATORS: Final = ("empty", "empty_strided", "empty_like", "empty_permuted", "new_empty", "new_empty_strided")


def _overloads(names: tuple[str, ...]) -> list[Any]:
    packets: list[Any] = [getattr(torch.ops.aten, name) for name in names if hasattr(torch.ops.aten, name)]
    return [
        getattr(packet, overload)
        for packet in packets
        for overload in packet.overloads()
        if not overload.endswith("out")
    ]


_FILLED: Final = frozenset(map(id, _overloads(_ALLOCATORS)))  # hashing an operator costs as much as many an operator


@dataclass(frozen=True, slots=True)
class Junk:
    """An allocation that was filled with NaN bytes, and where the host made it."""

    number: int
    nbytes: int
    chain: tuple[RawSite, ...]


class JunkMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Every floating-point allocation that nobody has written yet is filled with ``0xFF``.

    That cannot change a correct reload, because uninitialised memory may hold anything. Integers are left alone: they may
    be indices or handles. Every operator of the reload pays for it: where that is too dear, a watch does without.
    """

    def __init__(self, junk: list[Junk]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._junk = junk
        self._weak = WeakStorages()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Torch's own way wraps every call, and imports its compiler for that; `_never_compiled` costs nothing."""
        return False

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """What the host has compiled runs compiled, as it does when nobody watches."""
        return True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **kwargs) if kwargs else func(*args)
        if id(func) in _FILLED:
            self._filled(result)
        return result

    def _filled(self, tensor: Any) -> None:
        if not isinstance(tensor, torch.Tensor) or is_wrapper(type(tensor)):
            return
        storage = storage_of(tensor)
        if storage is not None and storage.nbytes() and fill_ones(tensor):
            self._junk.append(Junk(self._weak.add(storage), storage.nbytes(), raw_sites(sys._getframe(2), 3)))


def _never_compiled(mode: Any) -> None:
    """Keep the compiler away from the mode's own code and from what that calls."""
    frames: Any = torch._C._dynamo.eval_frame
    code = mode.__torch_dispatch__.__code__
    if hasattr(frames, "set_code_exec_strategy"):
        skip = frames._FrameAction.SKIP
        frames.set_code_exec_strategy(code, frames._FrameExecStrategy(skip, skip))
    elif hasattr(frames, "skip_code"):  # of older releases of torch
        frames.skip_code(code)
    else:
        disable: Any = torch._disable_dynamo  # type: ignore[attr-defined]
        mode.__torch_dispatch__ = disable(mode.__torch_dispatch__)


_never_compiled(JunkMode)
