"""A report about some layers only: the pattern of ``--layers``."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import Final

from rebindlint.model import RebindlintError
from rebindlint.report.style import counted
from rebindlint.runtime.report import Report

__all__ = ["must_match", "restricted"]

_MODEL: Final = "model."  # the root of the model's own tensors


def restricted(report: Report, layers: str) -> Report:
    """Only findings about tensors whose path matches, and those about the step as a whole."""
    if not layers:
        return report
    kept = tuple(f for f in report.findings if not f.tensor or any(_matches(p, layers) for p in (f.tensor, *f.also)))
    left_out = len(report.findings) - len(kept)
    notes = report.notes
    if left_out:
        notes = (*notes, f"left out: {counted(left_out, 'finding')} about other layers than {layers}")
    return dataclasses.replace(report, findings=kept, notes=notes, only=f"layers {layers}")


def must_match(layers: str, paths: Collection[str]) -> None:
    """Raises RebindlintError for a pattern that no path matches: it would leave out every finding, and look like an
    acquittal.
    """
    if any(_matches(path, layers) for path in paths):
        return
    named = [path for path in sorted(paths) if path.startswith(_MODEL) and "<" not in path]
    such = f"; a name is {max(named, key=lambda path: path.count('.')).removeprefix(_MODEL)}" if named else ""
    raise RebindlintError(f"no tensor of the model matches --layers {layers}{such}")


def _matches(path: str, pattern: str) -> bool:
    """Does the pattern match the path, the path as the model itself names it, or the path of an enclosing module?"""
    short = path.removeprefix(_MODEL)
    return any(fnmatchcase(name, candidate) for name in (path, short) for candidate in (pattern, pattern + ".*"))
