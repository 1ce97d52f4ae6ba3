"""Which entries of a folder are left out: ``.gitignore`` files and the configured ``exclude`` patterns."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Sequence

from pathspec import GitIgnoreSpec

from rebindlint.config import Config

__all__ = ["Excluded", "GitIgnore", "is_ignored", "read_gitignore"]

_GLOB = re.compile(r"[*?\[\\]")


class GitIgnore:
    """One ``.gitignore``: patterns that count from ``folder``, which ends in a separator.

    The walk prunes ignored folders, so a file is asked only about patterns that can name a Python file; this makes
    matching cheap in projects with hundreds of patterns.
    """

    __slots__ = ("_files", "_folders", "folder")

    def __init__(self, folder: str, lines: Sequence[str]) -> None:
        self.folder = folder.rstrip(os.sep) + os.sep
        self._folders = _spec(lines)
        self._files = _spec([line for line in lines if _can_name_python_file(line)])

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """True for ignored, False for explicitly kept, None when no pattern speaks of ``path``."""
        if not path.startswith(self.folder):
            return None
        relative = path[len(self.folder) :].replace(os.sep, "/")
        if is_folder:
            return self._folders.check_file(relative + "/").include
        return self._files.check_file(relative).include if len(self._files) else None


class Excluded:
    """The ``exclude`` and ``extend-exclude`` patterns; those with a slash count from the project root."""

    __slots__ = ("_globs", "_names", "_paths", "_root")

    def __init__(self, config: Config) -> None:
        self._root = str(config.root).rstrip(os.sep) + os.sep
        names: set[str] = set()
        globs: list[str] = []
        paths: list[str] = []
        for pattern in (*config.exclude, *config.extend_exclude):
            pattern = pattern.removeprefix("./").removeprefix(self._root)
            if "/" in pattern.rstrip("/"):
                paths.append(pattern if pattern.startswith("/") else "/" + pattern)
            elif _GLOB.search(pattern):
                globs.append(fnmatch.translate(pattern.rstrip("/")))
            else:
                names.add(pattern.rstrip("/"))
        self._names = frozenset(names)
        self._globs = re.compile("|".join(globs)) if globs else None
        self._paths = _spec(paths)

    def __call__(self, path: str, name: str, *, is_folder: bool) -> bool:
        if name in self._names or (self._globs is not None and self._globs.match(name)):
            return True
        if not len(self._paths) or not path.startswith(self._root):
            return False
        relative = path[len(self._root) :].replace(os.sep, "/")
        return self._paths.match_file(relative + "/" if is_folder else relative)


def is_ignored(gitignores: Iterable[GitIgnore], path: str, *, is_folder: bool) -> bool:
    """The deepest ``.gitignore`` that speaks of ``path`` decides; they come outermost first."""
    for gitignore in reversed(tuple(gitignores)):
        verdict = gitignore.verdict(path, is_folder=is_folder)
        if verdict is not None:
            return verdict
    return False


def read_gitignore(folder: str, file: str | None = None) -> GitIgnore | None:
    """The patterns of ``folder``'s ``.gitignore`` (or of ``file``, counted from ``folder``); None when there are none."""
    try:
        with open(file or os.path.join(folder, ".gitignore"), encoding="utf-8", errors="surrogateescape") as stream:
            lines = [line for line in stream.read().splitlines() if line.strip() and not line.startswith("#")]
    except OSError:
        return None
    return GitIgnore(folder, lines) if lines else None


def _spec(lines: Sequence[str]) -> GitIgnoreSpec:
    """Invalid patterns are skipped, as git does."""
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return GitIgnoreSpec.from_lines([line for line in lines if _is_valid(line)])


def _is_valid(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def _can_name_python_file(line: str) -> bool:
    """False when the pattern names folders only, or its last name ends otherwise than a Python file's may."""
    line = line.rstrip()
    if line.endswith("/"):
        return False
    tail = re.split(r"[*?\]]", line.rsplit("/", 1)[-1])[-1]
    return tail.endswith((".py", ".pyi")) or ".pyi".endswith(tail) or ".py".endswith(tail)
