"""Whole results on disk: an unchanged project with an unchanged configuration is not executed again.

The key covers everything that a result depends on; a result is never wrong, only absent. Nothing here may end a run:
what cannot be read or written is as if it were not there.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import pickle
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path

import rebindlint
from rebindlint.config import Config
from rebindlint.discover import Source
from rebindlint.model import Diagnostic
from rebindlint.parse_errors import Unparsed
from rebindlint.version import installed_version

__all__ = ["FOLDER", "Analysis", "Cache", "result_key"]

FOLDER = ".rebindlint_cache"
_KEPT = 8
_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder holds results of rebindlint; see https://bford.info/cachedir/\n"
# What a result does not depend on: it is selected, suppressed, filtered and reported after it was cached.
_IRRELEVANT = frozenset(
    {"file", "select", "extend_select", "ignore", "extend_ignore", "per_file_ignores", "fixable", "unfixable", "extend_safe_fixes",
     "extend_unsafe_fixes", "exclude", "extend_exclude", "force_exclude", "respect_gitignore", "cache_dir", "fix", "unsafe_fixes",
     "output_format", "required_version", "jobs"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the stages up to the fixers say about a whole project, before anybody's selection.

    ``parsed`` are the files whose syntax was checked as a whole; ``unparsed`` those that were found broken. Of ``hooks`` hooks
    ``sampled`` were not followed along every arm that binds nothing. ``unresolved`` are the notes that are shown on demand only.
    """

    diagnostics: tuple[Diagnostic, ...]
    unparsed: dict[str, Unparsed] = field(default_factory=dict)
    parsed: frozenset[str] = frozenset()
    hooks: int = 0
    sampled: int = 0
    unresolved: tuple[Diagnostic, ...] = ()


class Cache:
    """Results under their keys in one folder, the newest eight."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def for_config(cls, config: Config) -> Cache:
        return cls(config.root / (config.cache_dir or FOLDER))

    def load(self, key: str) -> Analysis | None:
        file = self._folder / f"{key}.pickle"
        try:
            found = _Unpickler(BytesIO(file.read_bytes())).load()
            os.utime(file)
        except Exception:  # a damaged pickle may raise anything
            return None
        return found if isinstance(found, Analysis) else None

    def store(self, key: str, analysis: Analysis) -> None:
        slim = replace(analysis, diagnostics=tuple(replace(d, fact=None) for d in analysis.diagnostics))
        with contextlib.suppress(OSError):
            self._prepare()
            self._write(f"{key}.pickle", pickle.dumps(slim, protocol=pickle.HIGHEST_PROTOCOL))
            self._prune()

    def _prepare(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        for name, text in ((".gitignore", "*\n"), ("CACHEDIR.TAG", _TAG)):
            if not (self._folder / name).exists():
                self._write(name, text.encode())

    def _write(self, name: str, raw: bytes) -> None:
        handle, temporary = tempfile.mkstemp(dir=self._folder, prefix=".", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(raw)
            os.replace(temporary, self._folder / name)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise

    def _prune(self) -> None:
        files = sorted(self._folder.glob("*.pickle"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
        for file in files[_KEPT:]:
            file.unlink(missing_ok=True)


class _Unpickler(pickle.Unpickler):
    """Builds our own records and nothing else: the folder may come with a project that nobody trusts."""

    def find_class(self, module: str, name: str) -> object:
        if (module, name) in _RECORDS or (module == "rebindlint.model" and name in _MODEL):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} does not belong into the cache")


_RECORDS = frozenset({("rebindlint.cache", "Analysis"), ("rebindlint.parse_errors", "Unparsed")})
_MODEL = frozenset({"Applicability", "Diagnostic", "Edit", "Fix", "Frame", "Place", "Position", "Protocol", "Severity"})


def result_key(sources: Iterable[Source], config: Config) -> str:
    """A digest of what a result depends on: the tool, the configuration, and each file's name, time and size.

    Standard input counts with its text. A file that cannot be asked counts as absent.
    """
    digest = hashlib.sha256(f"{installed_version()} {sys.version_info} {os.getcwd()}".encode())
    for name in Config.__dataclass_fields__:
        if name not in _IRRELEVANT:
            digest.update(f"{name}={getattr(config, name)!r}\n".encode(errors="surrogatepass"))
    for line in _own_files():
        digest.update(line.encode(errors="surrogatepass"))
    for source in sources:
        digest.update(
            f"{source.path}\0{source.shown}\0{source.module}\0{_stamp(source)}\n".encode(errors="surrogatepass")
        )
    return digest.hexdigest()


def _stamp(source: Source) -> str:
    if source.text is not None:
        return hashlib.sha256(source.text.encode(errors="surrogatepass")).hexdigest()
    try:
        status = os.stat(source.path)
    except OSError:
        return ""
    return f"{status.st_mtime_ns} {status.st_size}"


def _own_files() -> Iterator[str]:
    """Our own files with their stamps, so that an edited rule is a new tool."""
    folders = [*rebindlint.__path__]
    for name in ("rebindlint.rules", "rebindlint.fixers"):
        spec = importlib.util.find_spec(name)
        folders += list(spec.submodule_search_locations or ()) if spec else ()
    for folder in sorted(set(folders)):
        for parent, inner, names in os.walk(folder):
            inner[:] = sorted(name for name in inner if name != "__pycache__" and not name.startswith("."))
            for name in sorted(names):
                if name.endswith(".py"):
                    status = os.stat(os.path.join(parent, name))
                    yield f"{parent}/{name} {status.st_mtime_ns} {status.st_size}\n"
