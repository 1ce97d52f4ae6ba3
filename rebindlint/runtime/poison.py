"""Proof by poison: fill the memory that only the capture keeps with NaN, and see who reads it.

A storage is filled only when its owners are counted and all of them are ours, when torch itself allocated it, when it
holds floating-point numbers, and never when it is a handle. The eager step must not change; the replay turns to NaN.
Afterwards the bytes are put back.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterable, Iterator

import torch

from rebindlint.runtime.capture import Capture
from rebindlint.runtime.recorder import External
from rebindlint.runtime.storages import SavedBytes, fill_ones, only_owner, ownership_is_provable, torch_allocated

__all__ = ["may_be_filled", "poisoned", "unowned"]


def unowned(capture: Capture, externals: Iterable[External], *, collect: bool) -> set[int]:
    """Numbers of the storages that nothing but the capture keeps; with ``collect`` garbage is collected where it may
    decide.
    """
    candidates = list(externals)
    if not candidates or not ownership_is_provable():
        return set()
    found = _counted(capture, candidates)
    if collect and len(found) < len(candidates):
        gc.collect()  # replaced objects often hang in cycles (layer and kernel hold each other)
        found = _counted(capture, candidates)
    return found


def _counted(capture: Capture, externals: list[External]) -> set[int]:
    return {e.number for e in externals if only_owner(e.tensor, capture.held(e.number))}


def may_be_filled(external: External) -> bool:
    """Did torch allocate the storage, and does every operator that takes it use it as floating-point numbers?"""
    return torch_allocated(external.tensor) and all(
        use.layout.dtype.is_floating_point or use.layout.dtype.is_complex for use in external.uses
    )


@contextlib.contextmanager
def poisoned(externals: Iterable[External]) -> Iterator[list[External]]:
    """Fill those that may be filled while the context is open; gives the filled ones. The caller has proven that they
    are ours.
    """
    chosen = [e for e in externals if may_be_filled(e) and e.nbytes]
    saved = SavedBytes(e.tensor for e in chosen)
    try:
        with torch.inference_mode():
            filled = [e for e in chosen if fill_ones(e.tensor)]
        yield filled
    finally:
        saved.restore()
