"""What installing rebindlint hooks into: pytest and vLLM, both of which load it unasked."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from source_tree import ROOT, needs_source_tree

GROUPS = ("pytest11", "vllm.general_plugins")
WITHOUT_TORCH = """
import sys, importlib.util
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, Block())
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "REBINDLINT"))}
    environment["PYTHONPATH"] = str(ROOT)
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@needs_source_tree
@pytest.mark.parametrize("group", GROUPS)
def test_an_entry_point_leads_to_something_light(group: str, tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (value,) = project["entry-points"][group].values()
    importlib.metadata.EntryPoint("rebindlint", value, group).load()
    code = f"""
import sys
from importlib.metadata import EntryPoint
EntryPoint("rebindlint", {value!r}, {group!r}).load()
print(sorted({{"torch", "vllm", "libcst", "numpy", "rich", "click"}} & set(sys.modules)))
"""
    done = python(tmp_path, "-W", "error", "-c", code)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_pytest_works_where_torch_is_not_installed(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\n\ndef test_plain():\n    assert True\n\n\n"
        "@pytest.mark.rebind\ndef test_guarded(rebind_guard):\n    raise AssertionError\n"
    )
    loaded = any(point.name == "rebindlint" for point in importlib.metadata.entry_points(group="pytest11"))
    plugin = () if loaded else ("-p", "rebindlint.runtime.pytest_plugin")
    done = python(tmp_path, "-c", WITHOUT_TORCH, "-W", "error", "--strict-markers", "-rs", *plugin, "test_it.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed, 1 skipped" in done.stdout
    assert "rebind_guard needs torch" in done.stdout
