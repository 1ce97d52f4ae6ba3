"""Known hazards and traps of public releases, where their sources are at hand; nothing is downloaded here."""

from __future__ import annotations

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from source_tree import ROOT

from rebindlint.check import diagnose
from rebindlint.config import Config
from rebindlint.discover import discover
from rebindlint.execution.run import execute_hook
from rebindlint.index import Index, build_index, find_hooks
from rebindlint.model import Diagnostic, Protocol, Severity
from rebindlint.registry import rules

CASES = ROOT.parent / "shared" / "corpus" / "cases.json"
TREES = Path(os.environ.get("REBINDLINT_CORPUS", Path.home() / ".cache" / "rebindlint-corpus"))
RELEASES = ("vllm==0.25.1", "vllm==0.26.0")
MLA = "vllm/model_executor/layers/attention/mla_attention.py"
FLASHINFER = "vllm/v1/attention/backends/flashinfer.py"


@cache
def _known() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(CASES.read_text(encoding="utf-8"))
    return found


@cache
def _index(requirement: str) -> Index:
    folder = TREES / requirement.replace("==", "-")
    config = Config(root=folder, jobs=1)
    return build_index(discover(["vllm"], config, cwd=folder).context, config)


@cache
def _findings(requirement: str, path: str) -> list[Diagnostic]:
    """What the hooks of one file of a release come to: executing all of them would take too long here."""
    index = _index(requirement)
    hooks = [hook for hook in find_hooks(index) if hook.function.module.shown == path]
    assert hooks, f"{path} of {requirement} has no hooks"
    protocols = (Protocol.DIRECT, Protocol.LAYERWISE)
    facts = [fact for hook in hooks for fact in execute_hook(index, hook, protocols).facts]
    return diagnose(facts, rules(), index, index.config)


def _hits(case: dict[str, Any], found: list[Diagnostic]) -> list[Diagnostic]:
    """The findings within a line of the case, about one of its attributes."""
    return [
        d
        for d in found
        if d.place.filename == case["path"]
        and any(d.place.start.row - 1 <= line <= d.place.end.row + 1 for line in case["lines"])
        and set(re.findall(r"\w+", d.attribute)) & set(case["attribute"])
    ]


@pytest.mark.skipif(not CASES.is_file(), reason="the file of known cases is not at hand")
@pytest.mark.parametrize("requirement", RELEASES)
@pytest.mark.parametrize(("path", "attribute"), [(MLA, "W_UV"), (MLA, "W_UK_T"), (FLASHINFER, "sinks")])
def test_a_known_case_is_judged_as_it_should(requirement: str, path: str, attribute: str) -> None:
    if not (TREES / requirement.replace("==", "-") / ".complete").is_file():
        pytest.skip(f"the sources of {requirement} are not at hand")
    cases = [c for c in _known() if (c["tree"], c["path"]) == (requirement, path) and attribute in c["attribute"]]
    if not cases:
        pytest.skip(f"nothing is known of {attribute} in {requirement}")
    for case in cases:
        severities = {d.severity for d in _hits(case, _findings(requirement, path)) if attribute in d.attribute}
        if case["expect"] == "clean":
            assert severities == set()
        elif case["expect"] == "clean-layerwise" or not case["reload"]["layerwise"]:
            assert Severity.ERROR not in severities
            assert severities or case["expect"] != "flag"
        else:
            assert Severity.ERROR in severities
