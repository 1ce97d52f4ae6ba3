"""Target files that cannot be read or parsed. The index parses only what a hook needs; a broken file must not be silent."""

from __future__ import annotations

import multiprocessing
import symtable
from collections.abc import Sequence
from dataclasses import dataclass

from rebindlint.discover import Source, read_source
from rebindlint.model import Diagnostic, Place, Position, RebindlintError, Severity

__all__ = ["Unparsed", "check_syntax", "parse_error"]

_ENOUGH_FOR_PROCESSES = 250


@dataclass(frozen=True, slots=True)
class Unparsed:
    """Why a file could not be used. ``row`` 0: it could not even be read, and ``message`` names the file."""

    message: str
    row: int = 0
    column: int = 0


def check_syntax(sources: Sequence[Source], *, jobs: int = 0) -> dict[str, Unparsed]:
    """The files among ``sources`` that Python would refuse, by their shown name. ``jobs`` 0: one process a core.

    ``symtable`` runs the real parser without building a tree of Python objects, in two thirds of ``ast``'s time.
    """
    jobs = min(jobs or multiprocessing.cpu_count(), 8)
    if len(sources) < _ENOUGH_FOR_PROCESSES or jobs < 2 or "fork" not in multiprocessing.get_all_start_methods():
        verdicts = map(_check, sources)
        return {source.shown: verdict for source, verdict in zip(sources, verdicts, strict=True) if verdict is not None}
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        results = pool.map(_check, sources, chunksize=64)
    return {source.shown: verdict for source, verdict in zip(sources, results, strict=True) if verdict is not None}


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
