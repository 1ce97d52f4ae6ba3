"""Which rules are on, for which files, and which fixes count as safe: the ``select`` family of options."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rebindlint.config import Config, did_you_mean
from rebindlint.model import Applicability, Diagnostic, RebindlintError

__all__ = ["check_selectors", "is_selected", "select"]

# What these say is that something was not judged; choosing other rules must not turn that into silence.
_UNLESS_IGNORED = frozenset({"RB000", "RB003", "RB004"})
_SELECTOR_FIELDS = (
    "select",
    "extend_select",
    "ignore",
    "extend_ignore",
    "fixable",
    "unfixable",
    "extend_safe_fixes",
    "extend_unsafe_fixes",
)


def check_selectors(config: Config, known: Sequence[str]) -> None:
    """Raises RebindlintError with one line for a selector that names no rule."""
    for name in _SELECTOR_FIELDS:
        _check(getattr(config, name), name.replace("_", "-"), known)
    for pattern, codes in config.per_file_ignores:
        _check(codes, f"per-file-ignores.{pattern!r}", known)


def _check(codes: Iterable[str], where: str, known: Sequence[str]) -> None:
    for code in codes:
        if code != "ALL" and not any(one.startswith(code) for one in known):
            raise RebindlintError(f"unknown rule code `{code}` in {where}{did_you_mean(code, known)}")


def is_selected(code: str, config: Config) -> bool:
    """Whether a rule is on: the longest selector that names it decides, ``ignore`` before ``select`` when equally long."""
    ignored = _longest(code, (*config.ignore, *config.extend_ignore))
    if code in _UNLESS_IGNORED:
        return ignored < len(code)
    return _longest(code, (*config.select, *config.extend_select)) > ignored


def select(diagnostics: Iterable[Diagnostic], config: Config) -> list[Diagnostic]:
    """The diagnostics of rules that are on for their file, with the fixes that the configuration allows."""
    kept = (d for d in diagnostics if is_selected(d.code, config) and not _ignored_in_file(d, config))
    return [_with_allowed_fix(diagnostic, config) for diagnostic in kept]


def _ignored_in_file(diagnostic: Diagnostic, config: Config) -> bool:
    for pattern, codes in config.per_file_ignores:
        negated = pattern.startswith("!")
        if (
            _names(diagnostic.code, codes)
            and _matches(diagnostic.place.filename, pattern.removeprefix("!"), config) is not negated
        ):
            return True
    return False


def _matches(filename: str, pattern: str, config: Config) -> bool:
    """As in ruff: a pattern speaks of the file's name alone or of its path from the project's root."""
    from pathlib import Path, PurePosixPath

    if fnmatch.fnmatch(PurePosixPath(filename).name, pattern):
        return True
    path = Path.cwd() / filename
    relative = path.relative_to(config.root).as_posix() if path.is_relative_to(config.root) else path.as_posix()
    return fnmatch.fnmatch(relative, pattern.removeprefix("./"))


def _with_allowed_fix(diagnostic: Diagnostic, config: Config) -> Diagnostic:
    fix = diagnostic.fix
    if fix is None or fix.applicability is Applicability.DISPLAY:
        return diagnostic
    code = diagnostic.code
    if _longest(code, config.fixable) <= _longest(code, config.unfixable):
        return replace(diagnostic, fix=None)
    safe, unsafe = _longest(code, config.extend_safe_fixes), _longest(code, config.extend_unsafe_fixes)
    if safe == unsafe:
        return diagnostic
    return replace(
        diagnostic, fix=replace(fix, applicability=Applicability.SAFE if safe > unsafe else Applicability.UNSAFE)
    )


def _names(code: str, selectors: Iterable[str]) -> bool:
    return _longest(code, selectors) >= 0


def _longest(code: str, selectors: Iterable[str]) -> int:
    """The length of the longest selector that names ``code``; 0 for ``ALL``, -1 when none does."""
    lengths = (
        0 if selector == "ALL" else len(selector)
        for selector in selectors
        if selector == "ALL" or code.startswith(selector)
    )
    return max(lengths, default=-1)
