"""One piece of work for each hook, in as many processes as asked for."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import sys
from collections.abc import Callable, Iterator
from typing import TypeVar

from rebindlint.collector import collector_at_rest

__all__ = ["for_each"]

_CHUNK = 3  # hooks that are worth a process
_ROOM = 260_000  # stack entries: a chunk of 4 MiB, of which as much again is left
_COLLECT_EVERY = 2  # hooks: an execution leaves cycles behind; syntax trees survive and are not looked at again
_T = TypeVar("_T")
_work: Callable[[int], object] | None = None  # what forked workers do with a number


def for_each(
    count: int, work: Callable[[int], _T], *, jobs: int = 0, progress: Callable[[int, int], None] | None = None
) -> list[_T]:
    """``work(0)`` … ``work(count - 1)``, in order. ``jobs`` 0: as many processes as there are cores; results must pickle."""
    jobs = min(jobs or multiprocessing.cpu_count(), max(count // _CHUNK, 1))
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 12_000))
    if jobs > 1 and "fork" in multiprocessing.get_all_start_methods():
        return _in_processes(count, work, jobs, progress)
    return _in_turn(count, work, progress)


def _in_turn(count: int, work: Callable[[int], _T], progress: Callable[[int, int], None] | None) -> list[_T]:
    results: list[_T] = []
    with _frozen():
        for number in range(count):
            results.append(_then_collected(work, number))
            if progress is not None:
                progress(number + 1, count)
    return results


def _in_processes(
    count: int, work: Callable[[int], _T], jobs: int, progress: Callable[[int, int], None] | None
) -> list[_T]:
    """Forked workers share the index that was built before; results come back in order."""
    global _work
    _work = work
    results: list[_T] = []
    try:
        with _frozen(), multiprocessing.get_context("fork").Pool(jobs) as pool:
            for result in pool.imap(_call, range(count)):
                results.append(result)  # type: ignore[arg-type]  # it is what ``work`` returns
                if progress is not None:
                    progress(len(results), count)
    finally:
        _work = None
    return results


@contextlib.contextmanager
def _frozen() -> Iterator[None]:
    """The collector must not walk what was built before, which forked workers share and would have to copy."""
    with collector_at_rest():
        gc.freeze()
        try:
            yield
        finally:
            gc.unfreeze()


def _with_room(work: Callable[[int], _T], number: int) -> _T:
    """``work(number)`` from a frame that asks for a large stack.

    CPython keeps frames in chunks of 16 KiB and gives a chunk back to the system as soon as it is empty. An interpreter that
    recurses a few hundred frames deep crosses the end of one all the time, and pays a page fault for each crossing: a tenth
    of the time of a large tree. A frame this large makes CPython map one chunk that has room for what is called from it as well.
    """
    return work(number)


if sys.implementation.name == "cpython":
    _with_room.__code__ = _with_room.__code__.replace(co_stacksize=_ROOM)


def _call(number: int) -> object:
    assert _work is not None
    return _then_collected(_work, number)


def _then_collected(work: Callable[[int], _T], number: int) -> _T:
    result = _with_room(work, number)
    if number % _COLLECT_EVERY == 0:
        gc.collect(0)
    return result
