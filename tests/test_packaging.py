"""What is shipped: the packages, the wheel, the sdist, and what importing them costs."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from source_tree import ROOT, copy_source_tree, needs_source_tree

MAPPED = {"rebindlint.rules": "rules", "rebindlint.fixers": "fixers"}


@dataclass(frozen=True)
class Built:
    """The contents of the built distributions: names without the sdist's top folder."""

    tree: Path
    wheel: frozenset[str]
    metadata: email.message.Message
    sdist: frozenset[str]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("built")
    tree = copy_source_tree(folder / "tree")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder / "dist"), str(tree)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    (wheel,) = (folder / "dist").glob("*.whl")
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        message = email.message_from_bytes(archive.read(metadata))
    with tarfile.open(sdist) as tar:
        members = frozenset(m.name.partition("/")[2] for m in tar.getmembers() if m.isfile())
    return Built(tree, frozenset(names), message, members)


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def folders_with_python(folder: Path) -> Iterator[Path]:
    for path in (folder, *sorted(p for p in folder.rglob("*") if p.is_dir())):
        if any(path.glob("*.py")):
            yield path


@needs_source_tree
def test_every_package_of_the_tree_is_listed() -> None:
    tool = project()["tool"]
    assert isinstance(tool, dict)
    expected = {".".join(path.relative_to(ROOT).parts) for path in folders_with_python(ROOT / "rebindlint")} | set(
        MAPPED
    )
    assert set(tool["setuptools"]["packages"]) == expected
    assert tool["setuptools"]["package-dir"] == MAPPED


@needs_source_tree
@pytest.mark.parametrize("folder", ["rules", "fixers"])
def test_rules_and_fixers_are_flat_because_a_sub_folder_would_be_missing_from_the_wheel(folder: str) -> None:
    assert list(folders_with_python(ROOT / folder)) == [ROOT / folder]


@needs_source_tree
def test_every_package_has_an_init_file() -> None:
    packages = [*folders_with_python(ROOT / "rebindlint"), ROOT / "rules", ROOT / "fixers"]
    assert [str(path) for path in packages if not (path / "__init__.py").exists()] == []


@needs_source_tree
def test_the_wheel_holds_every_module_and_nothing_outside_the_package(built: Built) -> None:
    expected = {path.relative_to(ROOT).as_posix() for path in (ROOT / "rebindlint").rglob("*.py")}
    for package, folder in MAPPED.items():
        expected |= {f"{package.replace('.', '/')}/{path.name}" for path in (ROOT / folder).glob("*.py")}
    assert {name for name in built.wheel if name.endswith(".py")} == expected
    assert "rebindlint/py.typed" in built.wheel
    assert {name.partition("/")[0] for name in built.wheel} == {"rebindlint", "rebindlint-0.1.0.dist-info"}


@needs_source_tree
def test_the_wheel_needs_four_packages_and_no_torch(built: Built) -> None:
    requirements = [r for r in built.metadata.get_all("Requires-Dist") or [] if "extra ==" not in r]
    assert {re.split(r"[^\w-]", r)[0] for r in requirements} == {"libcst", "click", "rich", "pathspec"}
    assert not any("<" in r or "==" in r for r in requirements), "an upper bound locks users out of the next Python"
    assert built.metadata["License-Expression"] == "Apache-2.0"


@needs_source_tree
@pytest.mark.parametrize("folder", ["tests", "docs", "rules", "fixers", "examples", "rebindlint", ".ci"])
def test_the_sdist_holds_the_whole_folder(built: Built, folder: str) -> None:
    # The source is the copy that was built: no other process writes to it meanwhile.
    files = {path.relative_to(built.tree).as_posix() for path in (built.tree / folder).rglob("*") if path.is_file()}
    assert files
    assert {name for name in files - built.sdist if "__pycache__" not in name and ".egg-info" not in name} == set()


@needs_source_tree
def test_the_sdist_holds_what_a_developer_needs(built: Built) -> None:
    names = {"LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml"}
    assert names | {".pre-commit-hooks.yaml", ".pre-commit-config.yaml"} <= built.sdist


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a fresh interpreter that sees installed packages only."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-P", "-W", "error", "-c", code]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_rules_and_fixers_are_no_import_names_of_their_own(tmp_path: Path) -> None:
    code = "from importlib.util import find_spec; print([n for n in ('rules', 'fixers', 'tests') if find_spec(n)])"
    run = python(code + "; import rebindlint.rules, rebindlint.fixers", tmp_path)
    assert (run.stdout, run.stderr) == ("[]\n", "")


def test_no_module_outside_runtime_imports_torch_or_vllm(tmp_path: Path) -> None:
    code = """
import importlib, pkgutil, sys
import rebindlint, rebindlint.rules, rebindlint.fixers
paths = {"rebindlint.": rebindlint.__path__, "rebindlint.rules.": rebindlint.rules.__path__, "rebindlint.fixers.": rebindlint.fixers.__path__}
modules = [module for prefix, path in paths.items() for module in pkgutil.walk_packages(path, prefix)]
for module in modules:
    if not module.name.startswith(("rebindlint.runtime", "rebindlint.__main__")):
        importlib.import_module(module.name)
        heavy = {"torch", "vllm", "numpy"} & set(sys.modules)
        assert not heavy, (module.name, heavy)
print("checked", {"rebindlint.rules.attribute_rebind", "rebindlint.pipeline"} <= set(sys.modules))
"""
    run = python(code, tmp_path)
    assert (run.stdout, run.stderr) == ("checked True\n", "")


def test_listing_the_rules_imports_no_torch(tmp_path: Path) -> None:
    code = """
import sys
from rebindlint.cli import cli
cli(["rules"], standalone_mode=False)
print(sorted({"torch", "vllm", "numpy"} & set(sys.modules)))
"""
    run = python(code, tmp_path)
    *rules, heavy = run.stdout.splitlines()
    assert (heavy, run.stderr) == ("[]", "")
    assert any(line.startswith("RB101") for line in rules)


def test_the_version_is_the_distribution_s(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "rebindlint", "--version"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    version = project()["project"]
    assert isinstance(version, dict)
    assert (run.returncode, run.stderr) == (0, "")
    assert version["version"] in run.stdout
