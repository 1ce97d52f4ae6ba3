"""What each rank knows, kept on disk while an engine of several processes is verified: a rank that dies takes the
others' answers along, and the engine with them.
"""

from __future__ import annotations

import contextlib
import multiprocessing.connection
import os
import pickle
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rebindlint.runtime.report import Report

__all__ = ["Deaths", "Kept", "ended_by"]

_PATIENCE: Final = 2.0  # seconds
_POLL: Final = 0.2  # seconds
_NAME: Final = "rank-{}.report"


class Kept:
    """The reports of the ranks of one engine in a folder that is theirs alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, rank: int, report: Report) -> None:
        """Instead of what was kept for the rank before. Raises OSError."""
        path = self._folder / _NAME.format(rank)
        part = path.with_suffix(".part")
        part.write_bytes(pickle.dumps(report))
        os.replace(part, path)

    def reports(self, ranks: int) -> dict[int, Report]:
        """By rank, as far as there are any."""
        found: dict[int, Report] = {}
        for rank in range(ranks):
            with contextlib.suppress(OSError, pickle.UnpicklingError, EOFError):
                found[rank] = pickle.loads((self._folder / _NAME.format(rank)).read_bytes())
        return found


class Deaths:
    """Sees, while it is open, which ranks end first: the engine ends the others, by force where they hang.

    ``first`` are their exit codes, by rank.
    """

    def __init__(self, processes: Sequence[Any]) -> None:
        self.first: dict[int, int | None] = {}
        self._processes = processes
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._wait, daemon=True, name="rebindlint-deaths")

    def __enter__(self) -> Deaths:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join()

    def settled(self) -> dict[int, int | None]:
        """The same, when the engine has just failed: for a moment an end may not have been seen."""
        self._thread.join(_PATIENCE)
        return self.first

    def _wait(self) -> None:
        sentinels = {process.sentinel: rank for rank, process in enumerate(self._processes)}
        while sentinels and not self._closed.is_set():
            ended = multiprocessing.connection.wait(list(sentinels), timeout=_POLL)
            if ended:
                self.first = {rank: self._code(rank) for sentinel, rank in sentinels.items() if sentinel in ended}
                return

    def _code(self, rank: int) -> int | None:
        """Another thread may be about to fetch it."""
        process = self._processes[rank]
        deadline = time.monotonic() + _PATIENCE
        while process.exitcode is None and time.monotonic() < deadline:
            time.sleep(0.01)
        code: int | None = process.exitcode
        return code


def ended_by(code: int | None) -> str:
    """How a process ended, in words."""
    if code is not None and code < 0:
        try:
            return f"died of {signal.Signals(-code).name}"
        except ValueError:
            return f"died of signal {-code}"
    return f"ended with code {code}"
