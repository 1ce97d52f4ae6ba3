"""From facts to findings, without a process and without torch."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rebindlint.model import Severity
from rebindlint.runtime.sites import Site
from rebindlint.runtime.sources.facts import Change, Memory, ScenarioFacts, Use, from_json, to_json
from rebindlint.runtime.sources.judge import judge
from rebindlint.runtime.sources.launch import Outcome, chosen_methods
from rebindlint.runtime.sources.methods import METHODS
from rebindlint.runtime.sources.report import report_of

LINE = Site("kernel.py", 7, 5, 7, 20, "Kernel.process")
HOOK = Site("method.py", 3, 1, 3, 1, "Method.process_weights_after_loading")
READER = Use("_C.gemm", "workspace", "read", Site("ops.py", 9, 1, 9, 2, "gemm"))
CHANGE = Change(
    kind="dead",
    tensor="layer.workspace",
    also=(),
    stayed=(),
    module="Linear",
    old=Memory(64, 16, "cpu", "unowned"),
    new=Memory(128, 16, "cpu", "live"),
    layouts=("float32[4]", "float32[4]"),
    rebound=(LINE,),
    hook="Method.process_weights_after_loading",
    rules=("RB101",),
    reader=READER,
)
FACTS = ScenarioFacts("marlin", "act-order", ("Linear",), HOOK, (CHANGE,), tensors=1, storages=1, reads=1, operators=1)


def outcome(*facts: ScenarioFacts) -> Outcome:
    return Outcome(Path("tree"), "1.2", "2.13", facts, 1.0)


def test_facts_survive_json() -> None:
    bare = ScenarioFacts("mla", "", changes=(replace(CHANGE, new=None, reader=None, rebound=()),))
    for facts in (FACTS, bare, ScenarioFacts("fp8", "", error="no")):
        assert from_json(json.loads(json.dumps(to_json(facts)))) == facts


@pytest.mark.parametrize(
    ("change", "step_error", "code", "severity", "said"),
    [
        ({}, "", "RT101", Severity.ERROR, "a captured step still reads the old one, which nothing else keeps"),
        ({}, "stopped", "RT101", Severity.ERROR, "a captured step still reads the old one"),
        ({"old": Memory(64, 16, "cpu", "kept")}, "", "RT101", Severity.ERROR, "something outside the layer keeps"),
        ({"new": None}, "", "RT101", Severity.ERROR, "was released by the reload"),
        ({"reader": None}, "", "RT109", Severity.NOTE, "the step does not read it"),
        ({"reader": None}, "stopped", "RT101", Severity.WARNING, "is not known, because the step stopped early"),
        ({"kind": "split", "stayed": ("layer.w",)}, "", "RT107", Severity.WARNING, "and `layer.w` shared storage"),
        ({"kind": "relaid"}, "", "RT108", Severity.ERROR, "a captured step reads the old layout"),
        ({"kind": "relaid", "reader": None}, "", "RT108", Severity.NOTE, "the step does not read it"),
        ({"kind": "relaid", "reader": None}, "stopped", "RT108", Severity.WARNING, "is not known"),
    ],
)
def test_verdicts(change: dict[str, object], step_error: str, code: str, severity: Severity, said: str) -> None:
    facts = replace(FACTS, changes=(replace(CHANGE, **change),), step_error=step_error)  # type: ignore[arg-type]
    (finding,) = judge(facts, Path("tree"))
    assert (finding.code, finding.severity) == (code, severity)
    assert said in finding.message
    assert "`layer.workspace` of marlin (act-order)" in finding.message
    assert (finding.place, finding.module, finding.static_rules) == (LINE, "Linear", ("RB101",))


def test_a_finding_without_a_line_points_at_the_reader_then_at_the_hook() -> None:
    (at_reader,) = judge(replace(FACTS, changes=(replace(CHANGE, rebound=()),)), Path("tree"))
    assert at_reader.place == READER.site
    (at_hook,) = judge(replace(FACTS, changes=(replace(CHANGE, rebound=(), reader=None),)), Path("tree"))
    assert at_hook.place == HOOK


def test_what_could_not_be_run_is_an_error_and_nothing_run_is_two() -> None:
    failed = ScenarioFacts("mla", "", error="it broke")
    assert [f.code for f in report_of(outcome(FACTS, failed)).findings] == ["RT101", "RT100"]
    assert report_of(outcome(FACTS, failed)).exit_code == 1
    assert report_of(outcome(failed)).exit_code == 2
    assert report_of(outcome(replace(FACTS, changes=()))).exit_code == 0


def test_an_absent_variant_is_no_finding_and_an_absent_method_is_one() -> None:
    clean = replace(FACTS, changes=())
    absent = ScenarioFacts("marlin", "other", absent="it has no such thing")
    report = report_of(outcome(clean, absent))
    assert (report.findings, report.exit_code) == ((), 0)
    assert "marlin (other)" in report.text()
    lacking = report_of(outcome(clean, replace(absent, method="mla"), replace(absent, method="mla", variant="b")))
    (finding,) = lacking.findings  # once a method
    assert finding.message == "mla could not be judged: vllm 1.2 does not have it (it has no such thing)"
    assert lacking.exit_code == 1


def test_methods_are_chosen_by_comma_lists() -> None:
    assert chosen_methods(["marlin, mla", "marlin", "fp8"]) == ("marlin", "mla", "fp8")
    assert chosen_methods([]) == chosen_methods(["all"]) == tuple(METHODS)
