"""Which files: the targets whose findings are reported, and the project around them as context."""

from __future__ import annotations

import io
import os
import stat
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rebindlint.config import Config, find_project_root
from rebindlint.ignored import Excluded, is_ignored
from rebindlint.model import RebindlintError
from rebindlint.walk import Walk, gitignores_above

__all__ = ["STDIN", "Discovery", "Source", "decode_source", "discover", "read_source"]

STDIN = "-"
_SUFFIXES = (".py", ".pyi")


@dataclass(frozen=True, slots=True)
class Source:
    """A Python file. ``path`` is absolute; ``shown`` is how the user would write it, with ``/`` between folders;
    ``module`` is its dotted name, counted from its import root. ``text`` overrides the file (standard input)."""

    path: Path
    shown: str
    module: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Discovery:
    """``targets`` are names as in ``Source.shown``; ``context`` holds them and the project around, sorted, no module
    twice; ``failures`` says in one line each which paths could not be used."""

    targets: frozenset[str]
    context: tuple[Source, ...]
    failures: tuple[str, ...] = ()


def discover(
    paths: Sequence[str | Path],
    config: Config,
    *,
    force_exclude: bool = False,
    stdin_text: str | None = None,
    stdin_filename: str | None = None,
    cwd: Path | None = None,
) -> Discovery:
    """The Python files that ``paths`` name. A folder is its own context (with the package that it lies in); for a
    file the context is its package and the rest of its project.

    A path named by the user is used even when it is ignored, unless ``force_exclude``; what lies below an
    ignored folder that is named is judged as if that folder were not ignored.
    """
    folder = str(cwd or Path.cwd())
    search = _Search(config, folder, force_exclude or config.force_exclude)
    for path in paths:
        if os.fspath(path) == STDIN:
            search.add_stdin(stdin_text or "", stdin_filename)
        else:
            search.add(os.fspath(path))
    return search.result()


class _Search:
    def __init__(self, config: Config, cwd: str, force_exclude: bool) -> None:
        self._config = config
        self._cwd = cwd
        self._force_exclude = force_exclude
        self._excluded = Excluded(config)
        self._walk = Walk(config, self._excluded)
        self._projects: list[str] = []
        self._targets: set[str] = set()
        self._failures: list[str] = []
        self._texts: dict[str, tuple[str, str]] = {}  # path -> shown, text of standard input

    def add(self, given: str) -> None:
        if not given:  # joined to the current folder it would be that folder
            self._failures.append("a path is empty")
            return
        path = os.path.abspath(os.path.join(self._cwd, given))
        is_folder = os.path.isdir(path) and not given.endswith(_SUFFIXES)
        if self._force_exclude and self._is_left_out(path, is_folder=is_folder):
            return
        failure = "" if is_folder else _why_no_file(path)
        if failure:
            self._failures.append(f"{given}: {failure}")
        elif is_folder:
            self._targets.update(self._walk.below(path))
        else:
            self._add_file(path)

    def add_stdin(self, text: str, filename: str | None) -> None:
        if filename is None:
            path = os.path.join(self._cwd, STDIN)
            self._texts[path] = (STDIN, text)
            self._walk.files[path] = "__stdin__"
            self._targets.add(path)
            return
        path = os.path.abspath(os.path.join(self._cwd, filename))
        self._texts[path] = (self._shown(path), text)
        if self._force_exclude and self._is_left_out(path, is_folder=False):
            return
        self._add_file(path)

    def _add_file(self, path: str) -> None:
        self._targets.add(path)
        folder = os.path.dirname(path)
        project = find_project_root(Path(folder))
        self._walk.file(path, str(project) if project else None)
        if project is not None and str(project) not in self._projects:
            self._projects.append(str(project))

    def _is_left_out(self, path: str, *, is_folder: bool) -> bool:
        """Whether ``path`` or a folder that holds it is excluded or ignored."""
        gitignores = gitignores_above(path, self._config) if self._config.respect_gitignore else ()
        root = str(self._config.root).rstrip(os.sep) + os.sep
        while path.startswith(root):
            if self._excluded(path, os.path.basename(path), is_folder=is_folder):
                return True
            if is_ignored([g for g in gitignores if path.startswith(g.folder)], path, is_folder=is_folder):
                return True
            path, is_folder = os.path.dirname(path), True
        return False

    def _shown(self, path: str) -> str:
        below = self._cwd.rstrip(os.sep) + os.sep
        return (path[len(below) :] if path.startswith(below) else path).replace(os.sep, "/")

    def result(self) -> Discovery:
        for project in self._projects:
            self._walk.below(project)
        sources = []
        for path, module in self._walk.files.items():
            shown, text = self._texts.get(path) or (self._shown(path), None)
            sources.append(Source(Path(path), shown, module, text))
        targets = frozenset(
            self._texts[path][0] if path in self._texts else self._shown(path) for path in self._targets
        )
        sources.sort(key=lambda source: source.shown)
        failures = (
            *self._failures,
            *(f"{self._shown(path)}: cannot be listed: {why}" for path, why in self._walk.failures),
        )
        return Discovery(targets, tuple(sources), failures)


def _why_no_file(path: str) -> str:
    """Why a path cannot be linted as a file; empty when it can."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "no such file or folder"
    except (OSError, ValueError) as error:  # a loop of links, a folder that may not be searched; a null byte
        return f"cannot be read: {getattr(error, 'strerror', None) or error}"
    if stat.S_ISDIR(mode):
        return "is a folder, although it is named like a Python file"
    if not stat.S_ISREG(mode):  # reading a pipe may wait for ever
        return "not a regular file; `-` reads standard input"
    return "" if path.endswith(_SUFFIXES) or _has_python_shebang(path) else "not a Python file"


def _has_python_shebang(path: str) -> bool:
    """A script without an extension, as pre-commit hands over."""
    if os.path.splitext(path)[1]:
        return False
    try:
        with open(path, "rb") as stream:
            first = stream.readline(200)
    except OSError:
        return True  # to be reported as unreadable
    return first.startswith(b"#!") and b"python" in first


def read_source(source: Source) -> str:
    """The text as Python would decode it, with its newlines as they are.

    Raises RebindlintError when the file cannot be read or decoded.
    """
    if source.text is not None:
        return source.text
    try:
        raw = source.path.read_bytes()
    except OSError as error:
        raise RebindlintError(f"{source.shown}: cannot be read: {error.strerror}") from error
    try:
        return decode_source(raw)[0]
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise RebindlintError(f"{source.shown}: cannot be decoded: {error}") from error


def decode_source(raw: bytes) -> tuple[str, str]:
    """The text, and the encoding that writes it back (``utf-8-sig`` when there is a byte order mark).

    Raises SyntaxError, UnicodeDecodeError or LookupError as the tokenizer does.
    """
    encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
    return raw.decode(encoding), encoding
