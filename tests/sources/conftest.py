"""Released trees of vLLM and the environment with its dependencies, which tests/engine/environment.py builds.

Where one is missing the tests are skipped. In CI (CI or REBINDLINT_REQUIRE_ENGINE is set) five releases are downloaded,
and a missing environment fails them.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from source_tree import ROOT

from rebindlint.model import RebindlintError
from rebindlint.runtime.sources.report import SourcesReport, verify_sources

TREES = Path(os.environ.get("REBINDLINT_CORPUS", Path.home() / ".cache" / "rebindlint-corpus"))
REQUIRED = bool(os.environ.get("REBINDLINT_REQUIRE_ENGINE")) or os.environ.get("CI", "").lower() in ("1", "true")
REQUIRED_RELEASES = ("0.24.0", "0.25.1", "0.26.0", "0.29.0", "0.33.0")

if importlib.util.find_spec("torch") is None:
    collect_ignore = ["test_pipeline_of_sources.py"]


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"_{path.stem}_of_{path.parent.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def engine_python() -> Path | None:
    environment = _module(ROOT / "tests" / "engine" / "environment.py")
    folder: Path = environment.folder()
    python: Path = environment.python(folder)
    return python if environment.is_built(folder) else None


@cache
def tree_of(release: str) -> Path | None:
    folder = TREES / f"vllm-{release}"
    if (folder / "vllm" / "__init__.py").exists():
        return folder
    if REQUIRED and release in REQUIRED_RELEASES:
        fetched: Path = _module(ROOT / "benchmarks" / "released.py").folder_of(f"vllm-{release}")
        return fetched
    return None


@cache
def _report(release: str) -> SourcesReport | RebindlintError:
    python, tree = engine_python(), tree_of(release)
    assert python is not None
    assert tree is not None
    try:
        return verify_sources(tree, ["all"], python=python)
    except RebindlintError as error:
        return error


@pytest.fixture
def report() -> Callable[[str], SourcesReport]:
    """Every method of a release, run once a session."""

    def reported(release: str) -> SourcesReport:
        if engine_python() is None:
            (pytest.fail if REQUIRED and release in REQUIRED_RELEASES else pytest.skip)(
                "no environment with vLLM's dependencies: python tests/engine/environment.py builds it"
            )
        if tree_of(release) is None:
            pytest.skip(f"vllm {release} is not in the corpus")
        outcome = _report(release)
        if isinstance(outcome, RebindlintError):
            raise outcome
        return outcome

    return reported
