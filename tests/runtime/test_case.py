from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from rebindlint.model import RebindlintError
from rebindlint.runtime.case import Case, load_case, run_case
from rebindlint.runtime.demo import fixed_case, guilty_case, run_demo

SOURCE = """
import torch
from torch import nn

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.ones(2, 2)
    def forward(self, x):
        return x @ self.w

def parts(safe):
    layer, x = Layer(), torch.ones(1, 2)
    def reload():
        if safe:
            layer.w.copy_(torch.full((2, 2), 3.0))
        else:
            layer.w = torch.full((2, 2), 3.0)
    return layer, lambda m: m(x), reload

def guilty():
    return parts(False)

def safe(device):
    layer, step, reload = parts(True)
    def fresh():
        new = Layer()
        new.w = torch.full((2, 2), 3.0)
        return new
    return {"model": layer, "step": step, "reload": reload, "fresh": fresh, "protocol": "layerwise", "updates": ["w"]}

def four():
    layer, step, reload = parts(True)
    return layer, step, reload, None

def raises():
    raise RuntimeError("no weights here\\nat all")

def reload_raises():
    layer, step, _ = parts(True)
    def reload():
        raise OSError("disk gone")
    return layer, step, reload

def reload_exits():
    layer, step, _ = parts(True)
    return layer, step, lambda: exit_at_once()

def exit_at_once():
    raise SystemExit(0)

def exits():
    exit_at_once()

class Mute(Exception):
    def __str__(self):
        raise RuntimeError("this has no text")

def mute():
    layer, step, _ = parts(True)
    def reload():
        raise Mute
    return layer, step, reload

def without_forward():
    layer, _, reload = parts(True)
    return nn.Module(), lambda m: m(torch.ones(1)), reload

def step_raises():
    layer, _, reload = parts(True)
    return layer, lambda: 1 / 0, reload

def wrong():
    return 3

def wrong_keys():
    return {"model": Layer(), "stp": None}

def no_module():
    return 1, 2, 3

number = 5
class Nested:
    @staticmethod
    def case():
        return parts(True)
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "reload_cases_under_test.py").write_text(SOURCE)
    (tmp_path / "broken_case_under_test.py").write_text("import does_not_exist_anywhere")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    yield
    sys.modules.pop("reload_cases_under_test", None)


def run(name: str) -> Any:
    return run_case(f"reload_cases_under_test:{name}")


def test_a_guilty_case_is_convicted_with_its_line() -> None:
    report = run("guilty")
    assert [finding.code for finding in report.findings] == ["RT101", "RT102"]
    assert report.findings[0].place.filename == "reload_cases_under_test.py"
    assert report.findings[0].place.text == "layer.w = torch.full((2, 2), 3.0)"


@pytest.mark.parametrize("name", ["safe", "four", "Nested.case"])
def test_a_safe_case_in_every_form_is_silent(name: str) -> None:
    assert run(name).findings == ()


def test_a_case_takes_its_options() -> None:
    case = load_case("reload_cases_under_test:safe")
    assert isinstance(case, Case)
    assert (case.protocol, case.updates) == ("layerwise", ["w"])


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("reload_cases_under_test", "named pkg.module:function"),
        (":guilty", "named pkg.module:function"),
        ("no_such_module_anywhere:f", "cannot import no_such_module_anywhere: ModuleNotFoundError"),
        ("broken_case_under_test:f", "cannot import broken_case_under_test: ModuleNotFoundError"),
        ("reload_cases_under_test:missing", "has no function missing"),
        ("reload_cases_under_test:number", "has no function number"),
        ("reload_cases_under_test:raises", "could not be made: RuntimeError: no weights here"),
        ("reload_cases_under_test:reload_raises", "failed: OSError: disk gone"),
        ("reload_cases_under_test:reload_exits", "failed: SystemExit: 0"),
        ("reload_cases_under_test:exits", "could not be made: SystemExit: 0"),
        ("reload_cases_under_test:mute", "failed: Mute$"),
        ("reload_cases_under_test:without_forward", "failed: NotImplementedError: Module .* is missing the required"),
        ("reload_cases_under_test:step_raises", "failed: ZeroDivisionError"),
        ("reload_cases_under_test:wrong", "gives a int; wanted"),
        ("reload_cases_under_test:wrong_keys", "gives a wrong mapping"),
        ("reload_cases_under_test:no_module", "needs a torch.nn.Module, not a int"),
    ],
)
def test_whatever_goes_wrong_is_one_line(reference: str, message: str) -> None:
    with pytest.raises(RebindlintError, match=message) as caught:
        run_case(reference)
    assert "\n" not in str(caught.value)


def test_the_demonstration_convicts_and_acquits() -> None:
    guilty, fixed = run_demo("cpu")
    assert {(f.code, f.tensor) for f in guilty.findings} == {
        ("RT101", "model.w_uk_t"),
        ("RT101", "model.w_uv"),
        ("RT102", ""),
    }
    for finding in guilty.with_code("RT101"):
        assert finding.hook == "LatentAttention.process_weights_after_loading"
        assert finding.reader is not None
        assert finding.reader.operator == "aten.bmm.default"
        assert "100% of the replay's result is NaN" in finding.evidence[0]
    assert fixed.findings == ()
    assert all(comparison.equal for comparison in fixed.comparisons)


def test_the_demonstrations_models_compute_the_same() -> None:
    guilty, fixed = guilty_case(), fixed_case()
    with torch.no_grad():
        step: Any = guilty.step
        assert torch.equal(step(guilty.model), step(fixed.model))
    assert isinstance(guilty.model, nn.Module)
