"""What ranks leave when one of them dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from rebindlint.runtime.report import Report
from rebindlint.runtime.vllm.kept import Deaths, Kept, ended_by


def test_the_last_report_of_each_rank_is_kept(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.keep(1, Report((), notes=("early",)))
    kept.keep(1, Report((), notes=("late",)))
    (tmp_path / "rank-2.report").write_bytes(b"half a rep")
    assert {rank: report.notes for rank, report in kept.reports(4).items()} == {1: ("late",)}


def test_only_the_first_to_end_count(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=time.sleep, args=(30,), daemon=True) for _ in range(3)]
    for process in processes:
        process.start()
    with Deaths(processes) as deaths:
        assert deaths.first == {}
        assert processes[1].pid is not None
        os.kill(processes[1].pid, signal.SIGSEGV)
        assert deaths.settled() == {1: -signal.SIGSEGV}
        processes[0].kill()
        processes[0].join()
    processes[2].kill()
    assert deaths.first == {1: -signal.SIGSEGV}


def test_ranks_that_go_on_have_not_died() -> None:
    process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(30,), daemon=True)
    process.start()
    with Deaths([process]) as deaths:
        pass
    assert deaths.first == {}
    process.kill()
    process.join()


def test_an_engine_in_this_process_has_no_ranks_to_lose() -> None:
    with Deaths([]) as deaths:
        assert deaths.settled() == {}


@pytest.mark.parametrize(
    ("code", "words"),
    [(-9, "died of SIGKILL"), (-11, "died of SIGSEGV"), (-123, "died of signal 123"), (3, "ended with code 3")],
)
def test_how_a_process_ended(code: int, words: str) -> None:
    assert ended_by(code) == words
