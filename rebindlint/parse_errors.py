"""Target files that cannot be read or parsed. The index parses only what a hook needs; a broken file must not be silent."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import signal
import symtable
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from rebindlint.discover import Source, read_source
from rebindlint.model import Diagnostic, Place, Position, RebindlintError, Severity

__all__ = ["SyntaxCheck", "Unparsed", "parse_error"]

_ENOUGH_FOR_PROCESSES = 250


@dataclass(frozen=True, slots=True)
class Unparsed:
    """Why a file could not be used. ``row`` 0: it could not even be read, and ``message`` names the file."""

    message: str
    row: int = 0
    column: int = 0


class SyntaxCheck:
    """Which of ``sources`` Python would refuse. Many files are checked in processes of their own, beside what their caller does.

    ``symtable`` runs the real parser without building a tree of Python objects, in two thirds of ``ast``'s time.
    ``jobs`` 0: as many processes as there are cores; half of them are used, the other half has the hooks to execute.
    """

    def __init__(self, sources: Sequence[Source], *, jobs: int = 0) -> None:
        self.sources = sources
        self._parts: list[tuple[Sequence[Source], Connection, BaseProcess]] = []
        jobs = min(jobs or multiprocessing.cpu_count(), 8)
        if len(sources) < _ENOUGH_FOR_PROCESSES or jobs < 2 or "fork" not in multiprocessing.get_all_start_methods():
            return
        context = multiprocessing.get_context("fork")
        count = jobs // 2
        for part in (sources[i::count] for i in range(count)):
            receiving, sending = context.Pipe(duplex=False)
            process = context.Process(target=_check_all, args=(part, sending), daemon=True)
            process.start()
            sending.close()
            self._parts.append((part, receiving, process))

    def result(self) -> dict[str, Unparsed]:
        """The files that Python would refuse, by their shown name; waits for the processes."""
        verdicts: dict[str, Unparsed] = {}
        for part, receiving, process in self._parts:
            try:
                verdicts |= receiving.recv()
            except (EOFError, OSError):  # the process was killed
                verdicts |= _verdicts(part)
            receiving.close()
            process.join()
        return verdicts if self._parts else _verdicts(self.sources)


def _check_all(sources: Sequence[Source], sending: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's to report
    gc.disable()
    with contextlib.suppress(BrokenPipeError):  # the parent has gone
        sending.send(_verdicts(sources))
    sending.close()


def _verdicts(sources: Sequence[Source]) -> dict[str, Unparsed]:
    return {source.shown: verdict for source in sources if (verdict := _check(source)) is not None}


def _check(source: Source) -> Unparsed | None:
    try:
        symtable.symtable(read_source(source), source.shown, "exec")
    except RebindlintError as error:
        return Unparsed(str(error))
    except SyntaxError as error:
        return Unparsed(error.msg or "invalid syntax", max(error.lineno or 1, 1), max(error.offset or 1, 1))
    except (RecursionError, MemoryError):
        return Unparsed("nested or chained too deeply to be parsed", 1, 1)
    except ValueError as error:  # null bytes
        return Unparsed(str(error), 1, 1)
    return None


def parse_error(shown: str, unparsed: Unparsed) -> Diagnostic:
    """RB000 for a file that was read but not understood."""
    start = Position(unparsed.row, unparsed.column)
    place = Place(shown, start, Position(start.row, start.column + 1))
    return Diagnostic(
        "RB000",
        "parse-error",
        f"the file could not be parsed: {unparsed.message}; nothing in it was judged",
        Severity.ERROR,
        place,
    )
