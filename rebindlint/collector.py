"""The garbage collector while a tree is analysed: what is built stays to the end, and walking it again and again takes seconds."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

__all__ = ["collector_at_rest"]


@contextlib.contextmanager
def collector_at_rest() -> Iterator[None]:
    """No collections but those that are asked for; what is cyclic and no longer needed stays until then."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
