"""Which of the plugin's hook points released engines have; nothing is downloaded here."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from rebindlint.runtime.vllm.hook_points import FUNCTIONS, WORKER_BASE, WORKER_METHODS

TREES = Path(os.environ.get("REBINDLINT_CORPUS", Path.home() / ".cache" / "rebindlint-corpus"))
WORKER = ("vllm.v1.worker.gpu_worker", "Worker")
LACKING = {
    "0.20.2": ["finish_weight_update", "start_weight_update"],  # its updates have one phase
    "0.24.0": [],
    "0.25.1": [],
    "0.26.0": [],
    "0.29.0": [],
    "0.33.0": [],
}


def _body(tree: Path, module: str) -> list[ast.stmt]:
    path = tree.joinpath(*module.split(".")).with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8")).body if path.exists() else []


def _functions(body: list[ast.stmt]) -> set[str]:
    return {node.name for node in body if isinstance(node, ast.FunctionDef)}


def _methods(tree: Path, module: str, name: str) -> set[str]:
    classes = [node for node in _body(tree, module) if isinstance(node, ast.ClassDef) and node.name == name]
    return {method for node in classes for method in _functions(node.body)}


@pytest.mark.parametrize("release", LACKING)
def test_a_release_lacks_what_is_known(release: str) -> None:
    tree = TREES / f"vllm-{release}"
    if not tree.is_dir():
        pytest.skip(f"no sources in {tree}")
    base, worker = _methods(tree, *WORKER_BASE), _methods(tree, *WORKER)
    lacking = [name for module, names in FUNCTIONS.items() for name in set(names) - _functions(_body(tree, module))]
    lacking += set(WORKER_METHODS) - base - worker
    assert sorted(lacking) == LACKING[release]
    assert "__init__" in base
