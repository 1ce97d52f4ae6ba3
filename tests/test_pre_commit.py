"""The hooks that users get, run by pre-commit out of a commit of this tree."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from source_tree import copy_source_tree, needs_source_tree

pytestmark = [pytest.mark.network, needs_source_tree]

LAYOUT = """\
def by_columns(weight):
    return weight.t().contiguous()


def as_loaded(weight):
    return weight
"""
LINEAR = """\
from torch import nn

from engine.layout import as_loaded, by_columns


class Linear(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(weight)

    def process_weights_after_loading(self, act_dtype):
        self.weight_by_columns = by_columns(self.weight)
        self.weight_as_loaded = as_loaded(self.weight)

    def forward(self, x):
        return x @ self.weight_by_columns + x @ self.weight_as_loaded
"""
NORM = """\
from torch import nn

from engine.layout import by_columns


class Norm(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(weight)

    def process_weights_after_loading(self, act_dtype):
        self.table = by_columns(self.weight)

    def forward(self, x):
        return x * self.table
"""


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
    run = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, env=clean(), capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


def clean() -> dict[str, str]:
    """The environment without what a calling git or virtual environment left in it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PRE_COMMIT"))}
    return {name: value for name, value in kept.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A commit of this tree as it stands: pre-commit's own shadow of a changed tree leaves untracked files out."""
    folder = tmp_path_factory.mktemp("hooks")
    probe = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-qq",
        "--disable-pip-version-check",
        "--retries",
        "0",
        "--no-deps",
    ]
    answer = subprocess.run(
        [*probe, "-d", str(folder / "probe"), "pathspec", "setuptools"], capture_output=True, check=False
    )
    if answer.returncode:
        pytest.skip("no package index can be reached, so pre-commit cannot build its environment")
    copy = copy_source_tree(folder / "rebindlint")
    git(copy, "init", "--quiet")
    git(copy, "add", "--all")
    git(copy, "commit", "--quiet", "--no-verify", "--message", "as it stands")
    return copy


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in {"__init__": "", "layout": LAYOUT, "linear": LINEAR, "norm": NORM}.items():
        path = tmp_path / "engine" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    return tmp_path


def try_repo(hooks: Path, project: Path, *arguments: str) -> dict[str, str]:
    """What each hook printed, by its id; a hook that passed prints nothing."""
    command = [sys.executable, "-m", "pre_commit", "try-repo", "--color=never", str(hooks), *arguments]
    run = subprocess.run(command, cwd=project, env=clean(), capture_output=True, text=True, check=False)
    assert run.returncode in (0, 1), run.stdout + run.stderr
    assert "Traceback" not in run.stdout + run.stderr
    sections = re.split(r"^- hook id: (\S+)$", run.stdout, flags=re.MULTILINE)
    return dict(zip(sections[1::2], sections[2::2], strict=True))


def findings(output: str) -> set[tuple[str, str, str]]:
    """The (code, attribute, file) of what was reported as text."""
    return set(re.findall(r"^(RB\d{3})(?: \[\*\])? `self\.(\w+)`.*\n +--> engine/(\w+)\.py:", output, re.MULTILINE))


LINEAR_FINDING = ("RB101", "weight_by_columns", "linear")
NORM_FINDING = ("RB101", "table", "norm")


def test_only_the_given_files_are_reported_and_rewritten_with_the_project_as_context(
    hooks: Path, project: Path
) -> None:
    printed = try_repo(hooks, project, "--files", "engine/linear.py")

    # `weight_as_loaded` is no finding: the helper in the file that was not given hands its argument back.
    assert findings(printed["rebindlint"]) == {LINEAR_FINDING}

    assert "files were modified by this hook" in printed["rebindlint-fix"]
    fixed = (project / "engine/linear.py").read_text()
    assert "copy_(" in fixed
    compile(fixed, "linear.py", "exec")
    assert (project / "engine/norm.py").read_text() == NORM
    assert (project / "engine/layout.py").read_text() == LAYOUT

    # After the fix the given file is clean; the hook for projects still finds the other one.
    assert findings(printed["rebindlint-project"]) == {NORM_FINDING}


def test_all_files_reports_every_file(hooks: Path, project: Path) -> None:
    printed = try_repo(hooks, project, "rebindlint", "--all-files")

    assert findings(printed["rebindlint"]) == {LINEAR_FINDING, NORM_FINDING}
    assert (project / "engine/linear.py").read_text() == LINEAR
