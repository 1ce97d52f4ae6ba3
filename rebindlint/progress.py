"""A progress bar on standard error, for work that lasts."""

from __future__ import annotations

import sys
import time
from types import TracebackType

__all__ = ["ProgressBar"]

_PATIENCE = 1.0  # seconds without a bar
_PERIOD = 0.1  # seconds between two states of it


class ProgressBar:
    """Called with (done, total). Appears when work has lasted a second and standard error is a terminal."""

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled and sys.stderr.isatty()
        self._started = time.monotonic()
        self._shown = 0.0
        self._bar: object = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if not self._enabled or now - self._started < _PATIENCE or (now - self._shown < _PERIOD and done < total):
            return
        self._shown = now
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        if not isinstance(self._bar, Progress):
            # Without a refresh thread: processes may be forked while the bar stands.
            columns = (TextColumn("executing hooks"), BarColumn(), MofNCompleteColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
            self._bar.start()
            self._task = self._bar.add_task("hooks", total=total)
        self._bar.update(self._task, completed=done, total=total, refresh=True)
        if done >= total:
            self._stop()

    def _stop(self) -> None:
        from rich.progress import Progress

        if isinstance(self._bar, Progress):
            self._bar.stop()
            self._bar = None
