"""What docs/verify-torch.md shows is what happens."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "verify-torch.md").read_text(encoding="utf-8")
PLUGIN = "rebindlint.runtime.pytest_plugin"
INSTALLED = any(entry.value == PLUGIN for entry in importlib.metadata.entry_points(group="pytest11"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of the page, each named in its first line."""
    for name, text in re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(f"# {name}\n{text}")
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1"}
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_case_is_convicted_as_shown(folder: Path) -> None:
    shown = re.search(r"^\$ rebindlint verify (--case \S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert shown is not None
    done = run(folder, "rebindlint", "verify", "--device", "cpu", *shown[1].split())
    assert done.returncode == 1, done.stderr
    for part in re.split(r"^\.\.\.\n", shown[2], flags=re.MULTILINE):
        assert part in done.stdout


def test_the_test_fails_with_the_report(folder: Path) -> None:
    plugin = () if INSTALLED else ("-p", PLUGIN)
    done = run(folder, "pytest", "-p", "no:cacheprovider", "--strict-markers", *plugin, "test_my_layer.py")
    assert done.returncode == 1, done.stdout
    assert "the reload is not safe" in done.stdout
    assert "RT101 error: `model.packed` was bound to other storage" in done.stdout
