"""From facts to diagnostics: which protocols count, how severe a finding is, and what is one finding."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from executed import in_method, in_module, index_of

from rebindlint.check import diagnose
from rebindlint.config import Config
from rebindlint.execution import execute_hooks
from rebindlint.model import Diagnostic, Hazard, Protocol, Rebinding, Severity
from rebindlint.plugin import Rule
from rebindlint.registry import rules


def lint(root: Path, *, reload: str | None = None, **files: str) -> list[Diagnostic]:
    config = Config(root=root, reload=reload, jobs=1)
    index = index_of(root, config, **files)
    return diagnose(execute_hooks(index, config, jobs=1).facts, rules(), index, config)


SAVED = "layer.weight.data = layer.weight * 2"  # layerwise reloading copies it back by name
UNSAVED = "layer.w = layer.weight * 2"
VLLM = {"vllm/__init__": ""}


@pytest.mark.parametrize(
    ("body", "tree", "severity", "reload"),
    [
        (UNSAVED, VLLM, Severity.ERROR, ("direct", "layerwise")),
        (SAVED, VLLM, Severity.WARNING, ("direct",)),
        (UNSAVED, {}, Severity.ERROR, ("direct", "layerwise")),
        (SAVED, {}, Severity.ERROR, ("direct",)),
        (SAVED, {"plugin": "import vllm.model_executor"}, Severity.WARNING, ("direct",)),
    ],
)
def test_an_error_holds_under_the_trees_own_protocol(
    tmp_path: Path, body: str, tree: dict[str, str], severity: Severity, reload: tuple[str, ...]
) -> None:
    (found,) = lint(tmp_path, hooks=in_method(body), **tree)
    assert (found.severity, found.reload) == (severity, reload)


@pytest.mark.parametrize(
    ("reload", "body", "expected"),
    [
        (None, SAVED, ("direct",)),
        ("all", SAVED, ("direct",)),
        ("direct", SAVED, ("direct",)),
        ("layerwise", SAVED, None),
        ("sleep", SAVED, None),
        ("layerwise", UNSAVED, ("layerwise",)),
        ("direct", UNSAVED, ("direct",)),
    ],
)
def test_a_chosen_protocol_is_the_only_one(
    tmp_path: Path, reload: str | None, body: str, expected: tuple[str, ...] | None
) -> None:
    found = lint(tmp_path, hooks=in_method(body), reload=reload)
    assert [d.reload for d in found] == ([expected] if expected else [])


def test_a_finding_carries_where_what_and_why(tmp_path: Path) -> None:
    text = in_method("if layer.config.fast:\n    layer.w = (\n        layer.weight * 2\n    )")
    (found,) = lint(tmp_path, hooks=text)
    row = next(n for n, line in enumerate(text.splitlines(), 1) if "layer.w = (" in line)
    assert (found.code, found.name, found.attribute) == ("RB101", "attribute-rebind", "layer.w")
    assert (found.place.filename, found.place.start.row, found.place.end.row) == ("hooks.py", row, row + 2)
    assert found.place.start.column == 13
    assert found.hook == "Method.process_weights_after_loading"
    assert "`layer.w`" in found.message
    assert found.help


@pytest.fixture
def fact(tmp_path: Path) -> Rebinding:
    config = Config(root=tmp_path, jobs=1)
    (found,) = execute_hooks(index_of(tmp_path, hooks=in_method(UNSAVED)), config, jobs=1).facts
    return found


def diagnosed(tmp_path: Path, *facts: Rebinding, using: tuple[Rule, ...] | None = None) -> list[Diagnostic]:
    config = Config(root=tmp_path, jobs=1)
    return diagnose(
        facts, using if using is not None else rules(), index_of(tmp_path, hooks=in_method(UNSAVED)), config
    )


@pytest.mark.parametrize("other", [Hazard.LIFETIME, Hazard.FRESHNESS])
def test_at_one_place_the_address_hazard_wins(tmp_path: Path, fact: Rebinding, other: Hazard) -> None:
    address = replace(fact, protocols=frozenset({Protocol.LAYERWISE}))
    weaker = replace(fact, hazard=other, protocols=frozenset({Protocol.DIRECT}))
    for order in ((address, weaker), (weaker, address)):
        (found,) = diagnosed(tmp_path, *order)
        assert found.fact is not None
        assert found.fact.hazard is Hazard.ADDRESS
        assert found.reload == ("direct", "layerwise")


def test_two_cells_at_one_place_are_two_findings(tmp_path: Path, fact: Rebinding) -> None:
    other = replace(fact, cell=replace(fact.cell, path="layer.v", name="v"))
    assert [d.attribute for d in diagnosed(tmp_path, fact, other)] == ["layer.v", "layer.w"]


def test_findings_come_in_the_order_of_the_source(tmp_path: Path) -> None:
    body = "layer.v = layer.weight + 1\nlayer.w = layer.weight * 2"
    text = in_method(body, reads="layer.w, layer.v")
    found = lint(tmp_path, b=text, a=text)
    assert [(d.place.filename, d.attribute) for d in found] == [
        ("a.py", "layer.v"), ("a.py", "layer.w"), ("b.py", "layer.v"), ("b.py", "layer.w"),
    ]  # fmt: skip
    assert found == sorted(found, key=lambda d: d.sort_key)


def test_a_rule_that_raises_is_reported_and_ends_nothing(tmp_path: Path, fact: Rebinding) -> None:
    class Broken(Rule):
        code, name = "RB999", "broken"

        def owns(self, fact: Rebinding) -> bool:
            raise ZeroDivisionError("no")

        def message(self, fact: Rebinding) -> str:
            return ""

        def advice(self, fact: Rebinding) -> str:
            return ""

    (found,) = diagnosed(tmp_path, fact, using=(Broken(),))
    assert (found.code, found.severity) == ("RB999", Severity.WARNING)
    assert "ZeroDivisionError: no" in found.message


def test_a_fact_that_no_rule_owns_is_not_reported(tmp_path: Path, fact: Rebinding) -> None:
    assert diagnosed(tmp_path, fact, using=()) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (in_method(UNSAVED), "RB101"),
        (in_method(SAVED), "RB102"),
        (in_method("layer.w = Parameter(layer.weight * 2)"), "RB103"),
        (in_method("layer._parameters['weight'] = Parameter(layer.weight * 2)"), "RB105"),
        (in_module("if self.w is None:\n    self.w = self.weight * 2\nelse:\n    self.w = None", init="self.w = None"), "RB106"),
        (in_method("layer.w = functools.partial(print, layer.weight * 2)"), "RB201"),
        (in_method("if not hasattr(layer, 'w'):\n    layer.w = layer.weight * 2"), "RB204"),
        (in_module("self.w += 1", init="self.w = torch.zeros(4)"), "RB301"),
        (in_method("layer.weight.copy_(layer.weight.t())"), "RB302"),
    ],
)  # fmt: skip
def test_each_kind_of_fact_has_its_code(tmp_path: Path, text: str, code: str) -> None:
    assert [d.code for d in lint(tmp_path, hooks=text)] == [code]


@pytest.mark.parametrize("inside", ["register_parameter(name, Parameter(new))", "__setattr__(name, Parameter(new))"])
def test_an_argument_that_the_helper_rejects_is_what_is_said(tmp_path: Path, inside: str) -> None:
    helper = f"from torch.nn import Parameter\ndef replace_parameter(layer, name, new):\n    layer.{inside}\n"
    body = "from tool import replace_parameter\nreplace_parameter(layer, 'weight', layer.weight * 2, prefer_copy=True)"
    assert [d.code for d in lint(tmp_path, tool=helper, hooks=in_method(body))] == ["RB304"]


def test_a_message_says_that_one_reload_does_not_call_what_the_other_one_does(tmp_path: Path) -> None:
    config = Config(root=tmp_path, jobs=1)
    index = index_of(tmp_path, config, **VLLM, hooks=in_method(UNSAVED))
    facts = execute_hooks(index, config, jobs=1).facts
    both = [replace(fact, not_called=True) for fact in facts]
    plain, said = (diagnose(found, rules(), index, config) for found in (facts, both))
    assert [d.code for d in plain] == [d.code for d in said]
    assert all("does not call it again" in d.message for d in said)
    assert not any("does not call it again" in d.message for d in plain)
