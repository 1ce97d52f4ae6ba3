"""The texts of the linted files, with changes kept in memory until they are written."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rebindlint.discover import Source, decode_source, read_source
from rebindlint.model import Edit, Position, RebindlintError

__all__ = ["Changed", "Texts", "edited", "split_lines", "write_output", "write_source"]

_NEWLINE = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Changed:
    """A file whose text is no longer what was read; ``source`` is the file as it was found."""

    source: Source
    before: str
    after: str


class Texts:
    """Reads each file once; ``change`` puts a new text over it, which ``sources`` then carries."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self._sources = {source.shown: source for source in sources}
        self._before: dict[str, str] = {}
        self._after: dict[str, str] = {}

    def read(self, shown: str) -> str:
        """The current text. Raises RebindlintError when the file is not part of the project or cannot be read."""
        if shown in self._after:
            return self._after[shown]
        if shown not in self._before:
            if shown not in self._sources:
                raise RebindlintError(f"{shown}: not among the files that were linted")
            self._before[shown] = read_source(self._sources[shown])
        return self._before[shown]

    def change(self, texts: Mapping[str, str]) -> None:
        for shown, text in texts.items():
            self.read(shown)
            self._after[shown] = text

    def sources(self) -> tuple[Source, ...]:
        """The sources, with the changed text in place of the file's."""
        return tuple(
            replace(source, text=self._after.get(shown, source.text)) for shown, source in self._sources.items()
        )

    def originals(self) -> tuple[Source, ...]:
        """The sources as they were given."""
        return tuple(self._sources.values())

    def changed(self) -> tuple[Changed, ...]:
        return tuple(
            Changed(self._sources[shown], self._before[shown], after)
            for shown, after in sorted(self._after.items())
            if after != self._before[shown]
        )


def split_lines(text: str) -> list[str]:
    """The lines without their ends, split where Python's tokenizer splits (form feeds and the like do not end a line)."""
    return _NEWLINE.split(text)


def write_source(path: Path, text: str, shown: str = "") -> None:
    """Replaces a file's text in one step, with its mode, its encoding and its byte order mark; ``shown``: its name in errors.

    Raises RebindlintError when that is not possible; the file then still has its old text.
    """
    try:
        target = path.resolve(strict=True)  # through symbolic links, which a rename would replace
        if not os.access(target, os.W_OK):  # a rename would not ask
            raise PermissionError(errno.EACCES, "it is write-protected")
        _, encoding = decode_source(target.read_bytes())
        _replace(target, text.encode(encoding), target.stat().st_mode & 0o7777)
    except OSError as error:
        raise RebindlintError(f"{shown or path}: cannot be written: {error.strerror}") from error
    except (UnicodeError, SyntaxError, LookupError) as error:
        raise RebindlintError(f"{shown or path}: cannot be written: {error}") from error


def write_output(path: Path, text: str) -> None:
    """Writes a report, in one step where ``path`` is a plain file. Raises RebindlintError when it cannot be written."""
    raw = text.encode("utf-8", "backslashreplace")
    try:
        if path.exists() and not path.is_file():  # a pipe, or /dev/stdout
            path.write_bytes(raw)
        else:
            _replace(path.resolve(), raw, path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~_umask())
    except OSError as error:
        raise RebindlintError(f"{path}: cannot be written: {error.strerror}") from error


def _replace(target: Path, raw: bytes, mode: int) -> None:
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(raw)
        _keep_owner(temporary, target)
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _keep_owner(temporary: str, target: Path) -> None:
    """A file of another user's stays theirs, where this user may give files away at all."""
    with contextlib.suppress(OSError, AttributeError):  # a new file, no right to; no such thing on this system
        old, new = os.stat(target), os.stat(temporary)
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            os.chown(temporary, old.st_uid, old.st_gid)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def edited(text: str, edits: Iterable[Edit]) -> str:
    """``text`` with the edits of one file applied, last one first. Raises ValueError when they overlap or lie outside."""
    starts = [0, *(match.end() for match in _NEWLINE.finditer(text))]
    spans = sorted(
        (_offset(edit.place.start, starts, text), _offset(edit.place.end, starts, text), edit.content) for edit in edits
    )
    for (_, end, _), (start, _, _) in itertools.pairwise(spans):
        if start < end:
            raise ValueError("edits overlap")
    for start, end, content in reversed(spans):
        text = text[:start] + content + text[end:]
    return text


def _offset(position: Position, starts: Sequence[int], text: str) -> int:
    if position.row == len(starts) + 1 and position.column == 1:
        return len(text)  # past a last line without an end
    if not 1 <= position.row <= len(starts):
        raise ValueError(f"row {position.row} is not in the text")
    offset = starts[position.row - 1] + position.column - 1
    if offset > len(text):
        raise ValueError(f"column {position.column} is not in row {position.row}")
    return offset
