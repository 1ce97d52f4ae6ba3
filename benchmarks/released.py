"""Released trees: the Python files of a wheel, downloaded once into the corpus folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from rebindlint.model import RebindlintError

__all__ = ["findings_of", "folder_of", "package_of"]

_GLIBC = ("2_35", "2_34", "2_31", "2_28", "2_17")


def folder_of(tree: str) -> Path:
    """The folder of a tree such as ``vllm-0.33.0``, filled when missing. Raises RebindlintError when it cannot be had."""
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "rebindlint-corpus"
    folder = Path(os.environ.get("REBINDLINT_CORPUS", default)) / tree
    if not (folder / ".complete").exists():
        print(f"Downloading the wheel of {tree} for its Python files (once; an engine's is large) ...", file=sys.stderr)
        _download(folder, "==".join(tree.rsplit("-", 1)))
    return folder


def package_of(tree: str) -> str:
    """The import name of the package that a tree such as ``vllm-0.33.0`` holds."""
    return tree.rsplit("-", 1)[0].replace("-", "_")


def findings_of(tree: str) -> list[dict[str, Any]]:
    """What the linter says about a tree, notes left out. Raises RebindlintError when it does not run to its end."""
    command = [sys.executable, "-m", "rebindlint", "--no-cache", "--exit-zero", "--output-format", "json"]
    root = Path(__file__).resolve().parents[1]
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    run = subprocess.run(
        [*command, package_of(tree)],
        cwd=folder_of(tree),
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        raise RebindlintError(
            f"rebindlint {package_of(tree)} ended with {run.returncode} in {tree}: {_last(run.stderr)}"
        )
    return [finding for finding in json.loads(run.stdout) if finding["severity"] != "note"]


def _download(folder: Path, requirement: str) -> None:
    command = [sys.executable, "-m", "pip", "download", "-qq", "--disable-pip-version-check", "--retries", "1"]
    command += ["--no-deps", "--only-binary=:all:", "--python-version", "3.12", "--platform", "any"]
    for glibc in _GLIBC:
        command += ["--platform", f"manylinux_{glibc}_x86_64"]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as wheels:
            run = subprocess.run([*command, "-d", wheels, requirement], capture_output=True, text=True, check=False)
            if run.returncode:
                raise RebindlintError(f"{requirement} cannot be downloaded: {_last(run.stderr)}")
            for wheel in Path(wheels).glob("*.whl"):
                with zipfile.ZipFile(wheel) as archive:
                    archive.extractall(folder, [name for name in archive.namelist() if name.endswith(".py")])
        (folder / ".complete").touch()
    except (OSError, zipfile.BadZipFile) as error:
        raise RebindlintError(f"{requirement} cannot be kept in {folder}: {error}") from error


def _last(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no message"
