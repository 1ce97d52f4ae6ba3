"""The source tree that the tests lie in: copies of it to build and commit, so that the tree itself stays as it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

__all__ = ["ROOT", "copy_source_tree", "needs_source_tree"]

ROOT = Path(__file__).resolve().parents[1]
_LEFT_OUT = (
    "__pycache__",
    "*.egg-info",
    "build",
    "dist",
    ".git",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".rebindlint_cache",
)

# The tests also run against an installed wheel, with no packages beside them.
needs_source_tree = pytest.mark.skipif(not (ROOT / "rebindlint").is_dir(), reason="needs the source tree, not a wheel")


def copy_source_tree(target: Path) -> Path:
    """Everything but caches, build results and environments."""
    patterns = shutil.ignore_patterns(*_LEFT_OUT)

    def ignored(folder: str, names: list[str]) -> set[str]:
        environments = {name for name in names if (Path(folder) / name / "pyvenv.cfg").exists()}
        return patterns(folder, names) | environments

    return Path(shutil.copytree(ROOT, target, ignore=ignored, symlinks=True))
