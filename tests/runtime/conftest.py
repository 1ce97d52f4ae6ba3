"""The runtime half is tested where torch is installed; without it only what needs no torch is."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

_WITHOUT_TORCH = {"test_codes.py", "test_without_torch.py"}

if importlib.util.find_spec("torch") is None:
    from pathlib import Path

    collect_ignore = [p.name for p in Path(__file__).parent.glob("test_*.py") if p.name not in _WITHOUT_TORCH]


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    """Tiny tensors: threads would only add noise to timings."""
    if importlib.util.find_spec("torch") is None:
        yield
        return
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
