"""The example tree has the hazards that it was written to have, and the demo that is shown to newcomers keeps its word."""

from __future__ import annotations

import json
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
