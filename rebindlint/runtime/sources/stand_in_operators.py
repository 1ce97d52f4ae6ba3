"""Stand-ins for compiled operators: they give zeros of the right shape, or nothing where they write into an argument."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any, Final

import torch

from rebindlint.runtime.sources.reads import note_call

__all__ = ["Namespace", "nothing"]


def nothing(*_: object, **__: object) -> None:
    return None


class Namespace:
    """``torch.ops._C`` and its like: every operator exists. Those that ask what the binary supports answer as
    ``supported`` does.
    """

    def __init__(self, name: str, supported: Callable[..., bool]) -> None:
        self._name = name
        self._supported = supported
        self._operators: dict[str, _Operator] = {}

    def __getattr__(self, operator: str) -> _Operator:
        if operator.startswith("__"):
            raise AttributeError(operator)
        return self._operators.setdefault(operator, _Operator(f"{self._name}.{operator}", self._supported))


class _Operator:
    def __init__(self, name: str, supported: Callable[..., bool]) -> None:
        self.name = name
        self.default = self
        base = name.rpartition(".")[2]
        self._result: Callable[..., Any] = _RESULTS.get(base, supported if "support" in base else nothing)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # As the caller calls them: a stand-in has no schema to take names from.
        known = {id(value): name for name, value in sys._getframe(1).f_locals.items()}
        named = ((known.get(id(value), f"argument {index}"), value) for index, value in enumerate(args))
        note_call(self.name, itertools.chain(named, kwargs.items()))
        return self._result(*args, **kwargs)


def _integers(args: tuple[Any, ...]) -> list[int]:
    return [value for value in args if isinstance(value, int) and not isinstance(value, bool)]


def _marlin_repack(weight: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    size_k, size_n, bits = _integers(args)[:3]
    return weight.reshape(-1).clone().reshape(size_k // 16, size_n * 16 * bits // 32)


def _marlin_moe_repack(weight: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    size_k, size_n, bits = _integers(args)[:3]
    return weight.reshape(-1).clone().reshape(weight.shape[0], size_k // 16, size_n * 16 * bits // 32)


def _marlin_gemm(a: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    size_n = _integers(args)[2]  # the type's id and size_m come before it
    return torch.zeros(a.shape[0], size_n, dtype=a.dtype)


def _marlin_moe_gemm(a: torch.Tensor, output: torch.Tensor | None, *args: Any, **kwargs: Any) -> torch.Tensor:
    if output is not None:
        return output
    _, top_k, _, size_m, size_n = _integers(args)[:5]  # the first is a block size, the third the type's id
    return torch.zeros(size_m * top_k, size_n, dtype=a.dtype)


def _machete_prepack(weight: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return weight.clone().t().contiguous().t()


def _machete_mm(a: torch.Tensor, weight: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return torch.zeros(a.shape[0], weight.shape[1], dtype=a.dtype)


def _same(weight: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return weight.clone()


_RESULTS: Final[dict[str, Callable[..., Any]]] = {
    "gptq_marlin_repack": _marlin_repack,
    "awq_marlin_repack": _marlin_repack,
    "gptq_marlin_moe_repack": _marlin_moe_repack,
    "awq_marlin_moe_repack": _marlin_moe_repack,
    "marlin_gemm": _marlin_gemm,
    "gptq_marlin_gemm": _marlin_gemm,
    "moe_wna16_marlin_gemm": _marlin_moe_gemm,
    "machete_prepack_B": _machete_prepack,
    "machete_mm": _machete_mm,
    "permute_cols": _same,
}
