"""What a user at a terminal sees meanwhile: the progress bar, and the answer to Ctrl-C."""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
import sys
import threading
import time

import pytest

from rebindlint import progress
from rebindlint.interrupt import interrupts_for_this_process_only
from rebindlint.progress import ProgressBar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def look_at(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> io.StringIO:
    """No fixture: pytest puts its own stream in place between the fixtures and the test."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    return stream


def test_long_work_has_a_bar_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = look_at(monkeypatch, Terminal())
    with ProgressBar(enabled=True) as bar:
        bar(1, 3)
        shown = terminal.getvalue()
        bar(3, 3)
    assert "executing hooks" in shown
    assert "1/3" in shown
    assert terminal.getvalue().endswith("\x1b[2K")  # the line is cleared


def test_the_bar_is_not_drawn_for_every_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = look_at(monkeypatch, Terminal())
    with ProgressBar(enabled=True) as bar:
        for done in range(1, 1000):
            bar(done, 1000)
        assert 2 <= terminal.getvalue().count("executing hooks") < 100


def test_short_work_has_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = look_at(monkeypatch, Terminal())
    monkeypatch.setattr(progress, "_PATIENCE", 60.0)
    with ProgressBar(enabled=True) as bar:
        bar(1, 3)
    assert terminal.getvalue() == ""


def test_no_bar_when_quiet_or_when_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = look_at(monkeypatch, Terminal())
    with ProgressBar(enabled=False) as bar:
        bar(1, 3)
    assert terminal.getvalue() == ""
    stream = look_at(monkeypatch, io.StringIO())
    with ProgressBar(enabled=True) as bar:
        bar(1, 3)
    assert stream.getvalue() == ""


def _survives(_: int) -> str:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.01)
    return "alive"


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_forked_processes_ignore_an_interrupt_that_their_parent_answers() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interrupts_for_this_process_only():
        with multiprocessing.get_context("fork").Pool(1) as pool:
            assert pool.map(_survives, range(2)) == ["alive", "alive"]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_leave_signals_alone() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen: list[object] = []

    def work() -> None:
        with interrupts_for_this_process_only():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
