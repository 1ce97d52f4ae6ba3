"""Places in the host's source: who rebound a tensor, which line read it.

Taking a place must be cheap, because it is done for every operator and every assignment: only the code object and the
instruction are kept (`RawSite`); file, row, column and text are looked up when a finding is made.
"""

from __future__ import annotations

import importlib.util
import itertools
import linecache
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

from rebindlint.model import Frame, Place, Position

__all__ = ["RawSite", "Site", "definition_site", "entering_frame", "raw_sites", "resolve", "shown"]

RawSite = tuple[CodeType, int]

_HERE: Final = os.path.dirname(os.path.abspath(__file__)) + os.sep
_HOSTS: Final = (_HERE + "demo.py", "<stdin>")  # the demo plays the host's part
_MACHINERY: Final = (_HERE + "guard.py", _HERE + "watch.py")
_FOREIGN: Final = ("contextlib.py", "functools.py")
_PASSING_ON: Final = ("__torch_function__", "__torch_dispatch__")


def _torch_folder() -> str:
    spec = importlib.util.find_spec("torch")
    return os.path.dirname(spec.origin) + os.sep if spec is not None and spec.origin else "\0"


_TORCH: Final = _torch_folder()
_skipped: dict[str, bool] = {}  # file names are few; asking each of them once is enough


def _is_ours_or_torch(filename: str) -> bool:
    skipped = _skipped[filename] = filename not in _HOSTS and (
        filename.startswith((_TORCH, _HERE, "<")) or os.path.basename(filename) in _FOREIGN
    )
    return skipped


@dataclass(frozen=True, slots=True)
class Site:
    """A stretch of one line of source; columns count characters from 1, the end is exclusive."""

    filename: str
    row: int
    column: int
    end_row: int
    end_column: int
    function: str

    def __str__(self) -> str:
        return f"{self.filename}:{self.row}"

    @property
    def text(self) -> str:
        """The source line, stripped; empty when the source cannot be read."""
        return linecache.getline(self.filename, self.row).strip()

    @property
    def place(self) -> Place:
        return Place(self.filename, Position(self.row, self.column), Position(self.end_row, self.end_column))

    @property
    def frame(self) -> Frame:
        return Frame(self.filename, self.row, f"{self.function}: {self.text}" if self.text else self.function)


def raw_sites(frame: FrameType | None, depth: int, last: FrameType | None = None) -> tuple[RawSite, ...]:
    """The innermost ``depth`` frames of the host from ``frame`` outwards, up to ``last``: neither torch's nor our
    own.
    """
    found: list[RawSite] = []
    known = _skipped.get
    while frame is not None and len(found) < depth:
        code = frame.f_code
        skipped = known(code.co_filename)
        if skipped is None:
            skipped = _is_ours_or_torch(code.co_filename)
        # a tensor subclass of the host passes every operator on: the line that called the operator is further out
        if not skipped and code.co_name not in _PASSING_ON:
            found.append((code, frame.f_lasti))
        if frame is last:
            break
        frame = frame.f_back
    return tuple(found)


def entering_frame(frame: FrameType | None) -> FrameType | None:
    """The frame that entered one of our context managers: the first that is neither contextlib's nor our machinery's.

    The case runner and the demonstration count as hosts here: they enter on the host's behalf.
    """
    while frame is not None and (
        os.path.basename(frame.f_code.co_filename) in _FOREIGN or frame.f_code.co_filename in _MACHINERY
    ):
        frame = frame.f_back
    return frame


def shown(filename: str) -> str:
    """The file's name as a user would write it: relative to the working directory when below it."""
    path = Path(filename)
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):
        return path.as_posix()


def _character_column(line: str, byte_column: int) -> int:
    return len(line.encode()[:byte_column].decode(errors="ignore")) + 1


def resolve(raw: RawSite) -> Site:
    code, instruction = raw
    position = next(itertools.islice(code.co_positions(), instruction // 2, None), (None, None, None, None))
    row, end_row, start, end = position
    row = row or code.co_firstlineno
    line = linecache.getline(code.co_filename, row)
    if start is None or end is None or end_row is None:
        stripped = line.strip()
        column = line.find(stripped) + 1 if stripped else 1
        return Site(shown(code.co_filename), row, column, row, column + len(stripped), code.co_qualname)
    last = line if end_row == row else linecache.getline(code.co_filename, end_row)
    return Site(
        shown(code.co_filename),
        row,
        _character_column(line, start),
        end_row,
        _character_column(last, end),
        code.co_qualname,
    )


def definition_site(function: Callable[..., object]) -> Site:
    """Where a callable is written; this file's own name with row 1 when that cannot be known (builtins)."""
    code = getattr(function, "__code__", None) or getattr(getattr(function, "__call__", None), "__code__", None)  # noqa: B004
    code = code or getattr(getattr(function, "__func__", None), "__code__", None)
    if isinstance(code, CodeType):
        return Site(shown(code.co_filename), code.co_firstlineno, 1, code.co_firstlineno, 1, code.co_qualname)
    module = sys.modules.get(getattr(function, "__module__", "") or "")
    filename = getattr(module, "__file__", None) or "<unknown>"
    return Site(shown(filename), 1, 1, 1, 1, getattr(function, "__qualname__", repr(function)))
