"""What is found, in which words and in which order, does not depend on how Python hashes strings."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from source_tree import ROOT

from rebindlint.config import Config
from rebindlint.discover import discover
from rebindlint.execution.run import PROTOCOLS, execute_hook
from rebindlint.index import build_index, find_hooks

KINDS = Path(__file__).parent / "kinds"
SUFFIXES = ("weights", "scales", "experts", "gates", "heads", "biases", "tables", "masks")


def model() -> str:
    """Methods that only their names make hooks, which call one another: the order in which they are met could matter."""
    lines = ["import torch", "from torch import nn", "", "", "class Model(nn.Module):", "    def __init__(self):"]
    lines += ["        super().__init__()", "        self.weight = nn.Parameter(torch.zeros(4, 4))", ""]
    lines += ["    def load_weights(self, weights):", *(f"        self.finalize_{name}()" for name in SUFFIXES), ""]
    for name, other in zip(SUFFIXES, SUFFIXES[1:] + SUFFIXES[:1], strict=True):
        lines += [f"    def finalize_{name}(self):", f"        self.{name} = self.weight.t().contiguous()"]
        lines += [f"        self.prepare_{other}()", "", f"    def prepare_{name}(self):"]
        lines += [f"        self.ready_{name} = self.weight.clone()", ""]
    names = [f"self.{name} + self.ready_{name}" for name in SUFFIXES]
    return "\n".join([*lines, "    def forward(self, x):", f"        return x + {' + '.join(names)}", ""])


def report(tree: Path, seed: str) -> str:
    command = [sys.executable, "-m", "rebindlint", "--no-cache", "--isolated", "--jobs", "1", "--reload", "all"]
    command += ["--show-unresolved", "--output-format", "json", "."]
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    run = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stderr
    return run.stdout


def test_findings_do_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    for folder in ("fixtures", "kinds"):
        shutil.copytree(ROOT / "tests" / folder, tmp_path / folder)
    (tmp_path / "model.py").write_text(model())
    first = report(tmp_path, "1")
    found = json.loads(first)
    assert len({(finding["filename"], finding["hook"]) for finding in found}) > 50
    assert len({finding["code"] for finding in found}) > 10
    assert {finding["attribute"] for finding in found if finding["filename"] == "model.py"} == {
        f"self.{prefix}{name}" for prefix in ("", "ready_") for name in SUFFIXES
    }
    for seed in ("2", "3"):
        assert report(tmp_path, seed) == first


def test_what_is_found_does_not_hang_on_the_order_of_the_hooks() -> None:
    config = Config(root=KINDS, jobs=1)
    found = []
    for turn in (1, -1):
        index = build_index(discover([str(KINDS)], config, cwd=KINDS).context, config)
        hooks = find_hooks(index)
        results = {(h.name, h.function.module.name): execute_hook(index, h, PROTOCOLS) for h in hooks[::turn]}
        found.append({key: (r.executions, {f.key for f in r.facts}) for key, r in results.items()})
    assert len(found[0]) > 40
    assert found[0] == found[1]
