"""The example tree has the hazards that it was written to have, and the demo that is shown to newcomers keeps its word."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from source_tree import ROOT

EXAMPLES = ROOT / "examples"
EXPECTED = {
    ("attention.py", "W_UV"): "RB101",
    ("attention.py", "W_UK_T"): "RB101",
    ("attention.py", "sinks"): "RB203",
    ("quantization.py", "weight_t"): "RB103",
    ("quantization.py", "scale_f32"): "RB104",
    ("quantization.py", "workspace"): "RB101",
    ("quantization.py", "bias_cache"): "RB105",
    ("quantization.py", "kernel"): "RB201",
    ("experts.py", "w1"): "RB102",
    ("experts.py", "w2"): "RB105",
    ("experts.py", "row_peaks"): "RB204",
    ("experts.py", "temperature"): "RB301",
}


def run(*command: str, folder: Path = EXAMPLES) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False)


def test_the_tiny_engine_s_hazards_are_all_found_and_nothing_else_is() -> None:
    answer = run("-m", "rebindlint", "--no-cache", "--output-format", "json", "tiny_engine")
    assert answer.returncode == 1, answer.stderr
    found = {
        (Path(f["filename"]).name, re.findall(r"\w+", f["attribute"])[1]): f["code"] for f in json.loads(answer.stdout)
    }
    assert found == EXPECTED
    assert len(json.loads(answer.stdout)) == len(EXPECTED)


def test_the_demo_runs_without_a_network_and_proves_its_fixes() -> None:
    pytest.importorskip("torch")
    answer = run(str(EXAMPLES / "demo.py"), "--offline", folder=ROOT)
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    rows = re.findall(r"^  (\w+)\n +as written +(.*)\n +after --fix +(.*)$", answer.stdout, re.MULTILINE)
    assert [layer for layer, _, _ in rows] == ["attention", "linear", "experts"]
    assert all(before.startswith("replay is stale") for _, before, _ in rows)
    after = {layer: verdict for layer, _, verdict in rows}
    assert after["attention"] == "replay equals the eager run"
    assert after["linear"].endswith("memory that nothing else keeps: linear.kernel.table")
    assert after["experts"].startswith("replay is stale")
    # What has no safe fix is said to be left.
    assert re.search(r"quantization\.py still has RB201", answer.stdout)


def test_the_demo_explains_a_wrong_argument() -> None:
    answer = run(str(EXAMPLES / "demo.py"), "--online")
    assert answer.returncode == 2
    assert "Usage: demo.py" in answer.stdout


def test_a_release_that_cannot_be_had_is_replaced_by_the_bundled_tree(tmp_path: Path) -> None:
    """pip is told of no index, so the wheel is nowhere; the reason is given and the demo goes on."""
    script = "import sys; sys.path.insert(0, 'examples'); import demo; print(demo._released())"
    answer = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "REBINDLINT_CORPUS": str(tmp_path), "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    first, last = answer.stdout.splitlines()
    assert first.startswith("Not available, so a bundled tree is linted instead: vllm==0.25.1 cannot be downloaded: ")
    assert last == "None"
    assert not (tmp_path / "vllm-0.25.1" / ".complete").exists()
    (tmp_path / "vllm-0.25.1" / ".complete").touch()
    answer = subprocess.run(
        [sys.executable, "-c", script.replace("demo._released()", "demo._released().folder")],
        cwd=ROOT,
        env={**os.environ, "REBINDLINT_CORPUS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.stdout == f"{tmp_path / 'vllm-0.25.1'}\n", answer.stderr
