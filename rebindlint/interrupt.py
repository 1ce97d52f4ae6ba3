"""Ctrl-C goes to the whole process group; only the process that the user started may answer it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ["interrupts_for_this_process_only"]


@contextlib.contextmanager
def interrupts_for_this_process_only() -> Iterator[None]:
    """Processes forked meanwhile ignore SIGINT instead of each printing that it died; their parent ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's business
        return
    own = os.getpid()

    def handle(number: int, frame: FrameType | None) -> None:
        if os.getpid() == own:
            raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        if os.getpid() == own:
            signal.signal(signal.SIGINT, previous)
