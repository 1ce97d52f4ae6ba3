"""Tests on the real engine, in the environment that environment.py builds.

Where it is missing they are skipped, unless REBINDLINT_REQUIRE_ENGINE is set, as in CI.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import rebindlint

from . import environment

HERE = Path(__file__).parent
ROUNDS = "REBINDLINT_ROUNDS"  # environment variable
TIME_LIMIT = 900.0  # seconds for one process; a loaded machine needs a minute for one engine
KINDS = ("llama", "llama-tied", "gptq", "awq", "w8a8", "mla", "mixtral")
PARTIAL = "model.layers.0.mlp.down_proj.scales"  # what the partial checkpoint lacks

_MAKE = """
import sys
from pathlib import Path
from rebindlint.runtime.vllm.tiny import write_pair
folder = Path(sys.argv[1])
for kind in sys.argv[3:]:
    write_pair(folder / kind, kind)
write_pair(folder / "gptq-partial", "gptq", without=[sys.argv[2]])
"""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"repeat: runs only where {ROUNDS} says how many rounds; minutes for each")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.vllm)
            if item.get_closest_marker("repeat") and not os.environ.get(ROUNDS):
                item.add_marker(pytest.mark.skip(reason=f"set {ROUNDS}=5 to run it"))


@dataclass(frozen=True)
class Engine:
    """``run`` starts the engine's Python with this tree's rebindlint."""

    python: Path
    variables: dict[str, str]

    def run(
        self, arguments: Sequence[str], *, stdin: str = "", cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.python), *arguments],
            input=stdin, env=self.variables, cwd=cwd, capture_output=True, text=True, timeout=TIME_LIMIT, check=False,
        )  # fmt: skip


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    folder = environment.folder()
    if not environment.is_built(folder):
        reason = f"no engine environment in {folder}; build it with: make engine"
        if os.environ.get("REBINDLINT_REQUIRE_ENGINE"):
            pytest.fail(reason)
        pytest.skip(reason)
    # A folder with nothing but the package, so that the engine's environment gets no other packages of this one.
    path = tmp_path_factory.mktemp("path")
    (path / "rebindlint").symlink_to(Path(rebindlint.__file__).parent)
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "REBINDLINT", "COV_"))
        and name not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")
    }
    variables |= {"PYTHONPATH": str(path), "PYTHONWARNINGS": "ignore", "NO_COLOR": "1"}
    return Engine(environment.python(folder), variables)


@pytest.fixture(scope="session")
def checkpoints(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with v1 and v2 of every kind, and of ``gptq-partial``, whose v2 lacks a tensor."""
    folder = tmp_path_factory.mktemp("checkpoints")
    made = engine.run(["-c", _MAKE, str(folder), PARTIAL, *KINDS])
    assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture(scope="session")
def in_one_process(engine: Engine, checkpoints: Path) -> dict[str, Any]:
    """What was found in several engines, one after the other in one process."""
    requests: dict[str, dict[str, Any]] = {
        kind: request(checkpoints, kind)
        for kind in ("llama", "llama-tied", "gptq", "awq", "mla", "mixtral", "gptq-partial")
    }
    requests["mla plain"] = request(checkpoints, "mla", plain_linears=True)
    requests["llama plain, load-and-process"] = request(
        checkpoints, "llama", plain_linears=True, path="load-and-process"
    )
    requests["llama, load-and-process"] = request(checkpoints, "llama", path="load-and-process")
    requests["llama, without memory"] = request(checkpoints, "llama", without_memory=True)
    requests["llama, weight-transfer"] = request(checkpoints, "llama", path="weight-transfer")
    requests["mixtral, same weights"] = {
        **request(checkpoints, "mixtral"),
        "reload_from": str(checkpoints / "mixtral" / "v1"),
    }
    done = engine.run([str(HERE / "runs.py")], stdin=json.dumps(requests))
    assert done.returncode == 0, done.stderr[-4000:]
    outcomes: dict[str, Any] = json.loads(done.stdout)
    return outcomes


def request(checkpoints: Path, kind: str, **options: Any) -> dict[str, Any]:
    """As runs.py takes it."""
    return {"model": str(checkpoints / kind / "v1"), "reload_from": str(checkpoints / kind / "v2"), **options}
