"""Where a model lives, and by which means its step is captured there."""

from __future__ import annotations

import itertools
from typing import Final

import torch

from rebindlint.model import RebindlintError

__all__ = ["DEVICES", "chosen_device", "device_of", "wants_graph"]

DEVICES: Final = ("auto", "cpu", "cuda")


def device_of(model: torch.nn.Module) -> str:
    first = next(itertools.chain(model.parameters(), model.buffers()), None)
    return str(first.device) if first is not None else "cpu"


def chosen_device(device: str) -> str:
    """``cpu`` or ``cuda``; ``auto`` is cuda where there is one. Raises RebindlintError for what does not exist."""
    if device not in DEVICES:
        raise RebindlintError(f"unknown device {device!r}; use one of {', '.join(DEVICES)}")
    available = torch.cuda.is_available()
    if device == "cuda" and not available:
        raise RebindlintError("no CUDA device is available")
    return ("cuda" if available else "cpu") if device == "auto" else device


def wants_graph(model: torch.nn.Module, device: str) -> bool:
    """A real graph when asked for, or, on ``auto``, when the model is where one can be captured."""
    chosen = chosen_device(device)
    return chosen == "cuda" and (device == "cuda" or device_of(model).startswith("cuda"))
