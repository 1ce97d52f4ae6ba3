"""What the user asked for: ``[tool.rebindlint]`` of ``pyproject.toml``, overridden by the command line."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rebindlint.config_values import PARSERS
from rebindlint.model import RebindlintError
from rebindlint.version import installed_version, satisfies

__all__ = ["DEFAULT_EXCLUDE", "Config", "did_you_mean", "find_project_root", "load_config", "shown_file"]

DEFAULT_EXCLUDE = (
    ".bzr", ".direnv", ".eggs", ".git", ".git-rewrite", ".hg", ".ipynb_checkpoints", ".mypy_cache", ".nox", ".pants.d", ".pyenv",
    ".pytest_cache", ".pytype", ".rebindlint_cache", ".ruff_cache", ".svn", ".tox", ".venv", ".vscode", "__pycache__", "__pypackages__",
    "_build", "buck-out", "build", "dist", "node_modules", "site-packages", "venv",
)  # fmt: skip
_PROJECT_MARKERS = ("pyproject.toml", ".git", "setup.py")


@dataclass(frozen=True, slots=True)
class Config:
    """One field for each key of ``[tool.rebindlint]`` (dashes become underscores); everything is hashable.

    ``root`` is the folder that relative patterns and folders count from. ``reload`` is None when nobody chose a
    protocol: then the linted tree's own engine decides. ``jobs`` is the number of processes, 0 for one a core.
    """

    root: Path = Path()
    file: Path | None = None
    select: tuple[str, ...] = ("ALL",)
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extend_ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    fixable: tuple[str, ...] = ("ALL",)
    unfixable: tuple[str, ...] = ()
    extend_safe_fixes: tuple[str, ...] = ()
    extend_unsafe_fixes: tuple[str, ...] = ()
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    extend_exclude: tuple[str, ...] = ()
    force_exclude: bool = False
    respect_gitignore: bool = True
    src: tuple[str, ...] = ("src",)
    cache_dir: str | None = None
    fix: bool = False
    unsafe_fixes: bool = False
    output_format: str = "text"
    required_version: str | None = None
    target_version: str | None = None
    reload: str | None = None
    hooks: tuple[str, ...] = ()
    helpers: tuple[tuple[str, str], ...] = ()
    allocators: tuple[str, ...] = ()
    jobs: int = 0

    def but(self, options: Mapping[str, object]) -> Config:
        """This configuration with options of the command line on top; an option that is None was not given.

        A ``select`` on the command line starts afresh: what the file ignores or adds no longer counts, as in ruff.
        """
        given = {name: value for name, value in options.items() if value is not None}
        if "select" in given:
            given = {"extend_select": (), "ignore": (), "extend_ignore": (), **given}
        for name in ("extend_select", "ignore", "extend_ignore", "extend_exclude"):
            added = given.get(name)
            if isinstance(added, tuple) and "select" not in given:
                given[name] = (*getattr(self, name), *added)
        return replace(self, **given)  # type: ignore[arg-type]  # names and types come from the option declarations


def load_config(
    paths: Sequence[str | Path] = (),
    *,
    config_file: Path | None = None,
    isolated: bool = False,
    cwd: Path | None = None,
) -> Config:
    """The configuration for linting ``paths``: of ``config_file``, else of the nearest ``pyproject.toml`` above the
    first path that has a ``[tool.rebindlint]`` table; ``isolated`` reads none.

    Raises RebindlintError, naming the file and the key, for broken TOML, unknown keys and wrong values.
    """
    cwd = cwd or Path.cwd()
    first = Path(os.path.abspath(cwd / Path(paths[0]))) if paths else cwd
    if config_file is not None and not isolated:
        file = Path(os.path.abspath(cwd / config_file))
        return _from_table(_own_table(_read_toml(file, cwd), file, explicit=True) or {}, file, cwd)
    start = first if os.path.isdir(first) else first.parent  # unlike Path's, it never raises
    if not isolated:
        for folder in (start, *start.parents):
            file = folder / "pyproject.toml"
            if os.path.isfile(file) and (table := _own_table(_read_toml(file, cwd), file)) is not None:
                return _from_table(table, file, cwd)
    return Config(root=find_project_root(start) or cwd)


def find_project_root(start: Path) -> Path | None:
    """The nearest folder at or above ``start`` that looks like a project; never the file system's root.

    A repository at the home folder keeps somebody's dotfiles and is no project.
    """
    home = Path(os.path.expanduser("~"))
    for folder in (start, *start.parents):
        markers = _PROJECT_MARKERS if folder != home else tuple(name for name in _PROJECT_MARKERS if name != ".git")
        if folder != folder.parent and any(os.path.exists(folder / marker) for marker in markers):
            return folder
    return None


def _read_toml(file: Path, cwd: Path) -> dict[str, object]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise RebindlintError(f"{shown_file(file, cwd)}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RebindlintError(f"{shown_file(file, cwd)}: not valid TOML: {error}") from error


def _own_table(document: dict[str, object], file: Path, *, explicit: bool = False) -> dict[str, object] | None:
    """``[tool.rebindlint]``; a file named with ``--config`` that is no pyproject.toml may hold the keys at its top."""
    tool = document.get("tool")
    if isinstance(tool, dict) and "rebindlint" in tool:
        table = tool["rebindlint"]
        if not isinstance(table, dict):
            raise RebindlintError(f"{file.name}: `tool.rebindlint` must be a table")
        return table
    return document if explicit and file.name != "pyproject.toml" else None


def _from_table(table: Mapping[str, object], file: Path, cwd: Path) -> Config:
    values: dict[str, object] = {}
    for key, raw in table.items():
        if key not in PARSERS:
            raise RebindlintError(f"{shown_file(file, cwd)}: unknown key `{key}`{did_you_mean(key, PARSERS)}")
        try:
            values[key.replace("-", "_")] = PARSERS[key](raw)
        except ValueError as error:
            raise RebindlintError(f"{shown_file(file, cwd)}: `{key}` {error}") from error
    config = replace(Config(root=file.parent, file=file), **values)  # type: ignore[arg-type]  # PARSERS checked the types
    if config.required_version is not None and not satisfies(installed_version(), config.required_version):
        raise RebindlintError(
            f"{shown_file(file, cwd)}: rebindlint {config.required_version} is required, but this is {installed_version()}"
        )
    return config


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`` (did you mean `x`?)`` for the known word that is closest, or an empty string."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean `{close[0]}`?)" if close else ""


def shown_file(file: Path, cwd: Path) -> str:
    """A configuration file as messages name it."""
    return file.relative_to(cwd).as_posix() if file.is_relative_to(cwd) else str(file)
