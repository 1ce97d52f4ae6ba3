"""The engine in a process of its own, so that one that dies leaves a sentence and not a core dump.

Native code of an engine may end its process: memory that it freed and still uses, a failed assertion. What the
process prints goes to stderr; the report comes back through a pipe.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import multiprocessing
import multiprocessing.util
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Final

from rebindlint.model import RebindlintError
from rebindlint.runtime.report import Unfinished
from rebindlint.runtime.vllm.kept import ended_by
from rebindlint.runtime.vllm.request import QUIET, Request

if TYPE_CHECKING:
    from rebindlint.runtime.report import Report

__all__ = ["verify_in_child"]

_CHILDS: Final = {
    # glibc fills what is freed, so that native code which goes on reading it computes NaN each time and not, sometimes,
    # what was there; other C libraries ignore it
    "MALLOC_PERTURB_": "255",
    # or Python's process that counts semaphores complains about an engine that died, after the report
    "PYTHONWARNINGS": QUIET["PYTHONWARNINGS"],
}
_PATIENCE: Final = 30.0  # seconds for the process to end after its last message


def verify_in_child(request: Request, progress: Callable[[str], None]) -> Report:
    """`driver.verify_engine` in another process. Raises RebindlintError as it does, and when the process dies before
    anything is known; later, what is known is the report.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(theirs, request), name="rebindlint-engine")
    with _environment(), _not_interrupted():
        child.start()
    theirs.close()
    doing = "starting"
    known: Report | None = None
    try:
        while True:
            kind, value = ours.recv()
            if kind == "progress":
                doing = value
                progress(value)
            elif kind == "error":
                raise RebindlintError(value)
            elif kind == "unfinished":
                raise Unfinished(*value)
            elif kind == "partial":
                known = value
            else:
                return value  # type: ignore[no-any-return]
    except KeyboardInterrupt:
        child.terminate()
        raise
    except EOFError:
        child.join(_PATIENCE)
        text = f"the engine's process {ended_by(child.exitcode)} while {doing}"
        if known is None:
            raise RebindlintError(text) from None
        return dataclasses.replace(known, notes=(*known.notes, text))
    finally:
        ours.close()
        child.join(_PATIENCE)
        if child.is_alive():
            child.terminate()
            child.join()


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    """Of the processes that are started meanwhile, the child's and Python's own for it: `_CHILDS`, unless set."""
    added = {name: value for name, value in _CHILDS.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


@contextlib.contextmanager
def _not_interrupted() -> Iterator[None]:
    """A process started meanwhile leaves Ctrl-C, which a terminal sends to both, to us."""
    if threading.current_thread() is not threading.main_thread():  # only there Python handles signals
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _child(connection: Connection, request: Request) -> None:
    os.dup2(2, 1)  # stdout is for the report alone
    warnings.simplefilter("ignore")  # other packages' about each other
    logging.getLogger("torch._library.triton").setLevel(logging.ERROR)  # there is none on a CPU
    if request.tensor_parallel == 1:  # what the engine logs besides is in the exception; ranks only log it
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "CRITICAL")
    for name, value in QUIET.items():  # before torch is imported
        os.environ.setdefault(name, value)
    from rebindlint.runtime.vllm.driver import verify_engine

    def progress(text: str) -> None:
        connection.send(("progress", text))

    try:
        report = verify_engine(request, progress, lambda known: connection.send(("partial", known)))
    except Unfinished as error:
        connection.send(("unfinished", (str(error), error.report)))
    except RebindlintError as error:
        connection.send(("error", str(error)))
    else:
        connection.send(("report", report))
    connection.close()
    sys.stdout.flush()
    sys.stderr.flush()
    multiprocessing.util._exit_function()  # type: ignore[attr-defined]  # as every process of this module ends
    os._exit(0)  # native threads of the engine may hang or complain on the way out; everything is said
