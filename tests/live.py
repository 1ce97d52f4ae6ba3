"""Hooks of fixtures on real tensors: loaded, run, captured, loaded again, run again, checked.

A case that can run has a ``case.py`` with ``build(module) -> Live``; the module is the linted file, before or after its fix.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import torch

__all__ = ["Live", "Look", "Run", "execute", "imported", "loaded_case"]

Cells = Mapping[str, torch.Tensor]


@dataclass
class Live:
    """``load(n)`` writes the n-th set of weights into the parameters as they are now; ``cells()`` are the tensors that run-time
    code reads. Contents of ``scratch`` cells are nobody's business."""

    load: Callable[[int], None]
    hook: Callable[[], None]
    cells: Callable[[], Cells]
    scratch: frozenset[str] = field(default_factory=frozenset)


@dataclass
class Look:
    """A tensor as it was at one moment."""

    values: torch.Tensor
    stride: tuple[int, ...]
    dtype: torch.dtype
    address: int

    @classmethod
    def at(cls, tensor: torch.Tensor) -> Look:
        return cls(tensor.detach().clone(), tensor.stride(), tensor.dtype, tensor.data_ptr())

    def same_layout(self, other: Look) -> bool:
        return (self.values.shape, self.stride, self.dtype) == (other.values.shape, other.stride, other.dtype)


@dataclass
class Run:
    """What two runs left: after the first, after the second, and in the memory that a graph would have captured."""

    first: dict[str, Look]
    second: dict[str, Look | None]
    captured: dict[str, torch.Tensor]
    scratch: frozenset[str]

    def moved(self) -> set[str]:
        """Cells that show other memory than at capture, or none."""
        return {n for n, look in self.second.items() if look is None or look.address != self.first[n].address}

    def stale(self, fresh: Mapping[str, Look]) -> set[str]:
        """Cells whose captured memory does not hold what a first run on the new weights gives."""
        compared = self.captured.keys() - self.scratch
        return {n for n in compared if not _equal(self.captured[n], fresh[n].values)}


def _equal(left: torch.Tensor, right: torch.Tensor) -> bool:
    return left.shape == right.shape and left.dtype == right.dtype and torch.equal(left, right)


def execute(build: Callable[[ModuleType], Live], module: ModuleType) -> tuple[Run, dict[str, Look]]:
    """Both runs on one object, and a first run of another on the second weights."""
    fresh = build(module)
    fresh.load(2)
    fresh.hook()
    live = build(module)
    live.load(1)
    live.hook()
    captured = {name: tensor.detach() for name, tensor in live.cells().items()}
    first = {name: Look.at(tensor) for name, tensor in captured.items()}
    live.load(2)
    live.hook()
    now = live.cells()
    second = {name: Look.at(now[name].detach()) if name in now else None for name in first}
    return Run(first, second, captured, live.scratch), {name: Look.at(t.detach()) for name, t in fresh.cells().items()}


@contextmanager
def imported(folder: Path, name: str) -> Iterator[ModuleType]:
    """A module below the folder; it and everything else from there is forgotten afterwards."""
    known = set(sys.modules)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
        for added in set(sys.modules) - known:
            file = getattr(sys.modules[added], "__file__", None)
            if file is not None and Path(file).is_relative_to(folder):
                del sys.modules[added]


def loaded_case(path: Path) -> Callable[[ModuleType], Live]:
    """``build`` of a ``case.py``."""
    namespace: dict[str, object] = {"__name__": "case"}
    exec(compile(path.read_bytes(), str(path), "exec"), namespace)
    build = namespace["build"]
    assert callable(build)
    return build
