"""Comparing what two runs of a step gave."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from rebindlint.runtime.storages import is_wrapper

__all__ = ["Outcome", "Tolerance", "compare", "copies", "same_values", "tensors_in"]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Largest allowed ``|actual - expected|`` is ``atol + rtol * |expected|``; zero means bit for bit (NaN equals
    NaN).
    """

    rtol: float = 0.0
    atol: float = 0.0

    def __str__(self) -> str:
        return "exact" if self.rtol == 0 and self.atol == 0 else f"rtol={self.rtol:g}, atol={self.atol:g}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """``max_difference`` counts finite elements only, None where shapes forbid a comparison; ``nan_fraction`` is of
    ``actual``.
    """

    equal: bool
    max_difference: float | None
    nan_fraction: float
    reason: str = ""  # in words, when shapes, dtypes or numbers of tensors differ

    @property
    def gap(self) -> str:
        """How far apart, in words."""
        if self.reason:
            return self.reason
        if self.max_difference is None or math.isnan(self.max_difference):
            return f"{self.nan_fraction:.0%} NaN"
        return f"largest difference {self.max_difference:.3g}" + (
            f", {self.nan_fraction:.0%} NaN" if self.nan_fraction else ""
        )


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors of a step's result in a stable order: containers, dataclasses and wrapping tensor subclasses are
    opened.
    """
    return [tensor for leaf in tree_leaves(value) for tensor in _leaf_tensors(leaf)]


def _leaf_tensors(leaf: Any) -> Iterator[torch.Tensor]:
    if isinstance(leaf, torch.Tensor):
        if is_wrapper(type(leaf)) and hasattr(leaf, "__tensor_flatten__"):
            for name in leaf.__tensor_flatten__()[0]:
                yield from _leaf_tensors(getattr(leaf, name))
        elif not is_wrapper(type(leaf)):
            yield leaf
    elif dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
        for field in dataclasses.fields(leaf):
            yield from tensors_in(getattr(leaf, field.name, None))


def copies(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor.detach().clone() for tensor in tensors]


def _comparable(tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.detach()
    if plain.layout is not torch.strided:
        plain = plain.to_dense()
    if plain.is_complex():
        return torch.view_as_real(plain.resolve_conj()).to(torch.float64)
    # 64-bit integers lose bits in float64; they are compared as integers
    return plain.to(torch.float64) if plain.is_floating_point() else plain.to(torch.int64)


def same_values(expected: torch.Tensor, actual: torch.Tensor, tolerance: Tolerance) -> Outcome:
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        text = f"{_kind(actual)} instead of {_kind(expected)}"
        return Outcome(False, None, _nan_fraction(actual), text)
    if expected.numel() == 0:
        return Outcome(True, 0.0, 0.0)
    left, right = _comparable(expected), _comparable(actual.to(expected.device))
    nan = _nan_fraction(actual)
    both_nan = left.isnan() & right.isnan() if left.is_floating_point() else torch.zeros_like(left, dtype=torch.bool)
    gap = (right - left).abs()
    allowed = tolerance.atol + tolerance.rtol * left.abs()
    equal = bool(((left == right) | both_nan | (gap <= allowed)).all())
    finite = gap[gap.isfinite()] if gap.is_floating_point() else gap
    return Outcome(equal, float(finite.max()) if finite.numel() else math.nan, nan)


def compare(expected: Sequence[torch.Tensor], actual: Sequence[torch.Tensor], tolerance: Tolerance) -> Outcome:
    """All tensors of two runs together: the largest difference and the fraction of NaN over all elements."""
    if len(expected) != len(actual):
        return Outcome(False, None, 0.0, f"{len(actual)} tensors instead of {len(expected)}")
    outcomes = [same_values(left, right, tolerance) for left, right in zip(expected, actual, strict=True)]
    sizes = [max(1, tensor.numel()) for tensor in actual]
    gaps = [outcome.max_difference for outcome in outcomes if outcome.max_difference is not None]
    real = [gap for gap in gaps if not math.isnan(gap)]
    return Outcome(
        all(outcome.equal for outcome in outcomes),
        max(real) if real else (math.nan if gaps else None),
        sum(outcome.nan_fraction * size for outcome, size in zip(outcomes, sizes, strict=True)) / max(1, sum(sizes)),
        next((outcome.reason for outcome in outcomes if outcome.reason), ""),
    )


def _nan_fraction(tensor: torch.Tensor) -> float:
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.numel() == 0:
        return 0.0
    return float(_comparable(tensor).isnan().to(torch.float64).mean())


def _kind(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
