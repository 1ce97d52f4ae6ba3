from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rebindlint.runtime.command import verify
from rebindlint.runtime.report import Report, Unfinished

CASE = """
import torch
from torch import nn

def make_case():
    layer = nn.Linear(2, 2)
    x = torch.ones(1, 2)
    def reload():
        {reload}
    return layer, lambda m: m(x), reload
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def case(here: Path, name: str, reload: str) -> str:
    (here / f"{name}.py").write_text(CASE.format(reload=reload))
    return f"{name}:make_case"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(verify, list(arguments))


def test_the_demonstration_shows_both_and_exits_with_zero() -> None:
    result = run("--demo", "--device", "cpu")
    assert result.exit_code == 0
    guilty, _, fixed = result.output.partition("2. The same hook")
    assert "RT101 error: `model.w_uk_t`" in guilty
    assert "Found 3 errors." in guilty
    assert "Nothing found" in fixed


def test_the_demonstration_as_json() -> None:
    result = run("--demo", "--device", "cpu", "--output-format", "json")
    assert [record["code"] for record in json.loads(result.output)] == ["RT101", "RT101", "RT102"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--demo", "--methods", "mla"), "--methods goes with --sources"),
        (("--case", "a:b", "--tensor-parallel", "1"), "--tensor-parallel goes with --model"),
        (("--sources", "x", "--plain-linears"), "--plain-linears goes with --model"),
        (("--model", "x", "--reload-from", "y", "--time-limit", "3"), "--time-limit goes with --sources"),
        (("--sources", "x", "--device", "cuda"), "--sources runs on a CPU: --device cuda does not go with it"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.output.rstrip().endswith(message)


def test_findings_exit_with_one(here: Path) -> None:
    reference = case(here, "guilty_verify_case", "layer.weight.data = torch.zeros(2, 2)")
    result = run("--case", reference)
    assert result.exit_code == 1
    assert "layer.weight.data = torch.zeros(2, 2)" in result.output
    records = json.loads(run("--case", reference, "--output-format", "json").output)
    assert {record["attribute"] for record in records} == {"model.weight", None}


def test_a_clean_case_exits_with_zero(here: Path) -> None:
    reference = case(here, "clean_verify_case", "layer.weight.detach().fill_(2)")
    result = run("--case", reference)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "Nothing found" in result.output
    assert json.loads(run("--case", reference, "--output-format", "json").output) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "say either --demo or --case"),
        (["--demo", "--case", "a:b"], "say either --demo or --case"),
        (["--case", "no_such_module_at_all:f"], "rebindlint: cannot import no_such_module_at_all"),
        (["--demo", "--device", "tpu"], "Invalid value for '--device'"),
    ],
)
def test_bad_input_exits_with_two(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_what_the_hosts_code_prints_is_no_part_of_the_report(here: Path) -> None:
    reference = case(here, "talking_verify_case", "print('loading ...'); layer.weight.detach().fill_(2)")
    result = run("--case", reference, "--output-format", "json")
    assert json.loads(result.stdout) == []
    assert result.stderr == "loading ...\n"


def test_an_unfinished_verification_reports_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def unfinished(**_: object) -> None:
        raise Unfinished("rank 1 of 2 died", Report((), notes=("half of it",)))

    monkeypatch.setattr("rebindlint.runtime.command.verify_with_engine", unfinished)
    result = run("--model", "somewhere")
    assert (result.exit_code, result.stderr) == (2, "rebindlint: rank 1 of 2 died\n")
    assert "note: half of it" in result.stdout


def test_missing_torch_is_one_line_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rebindlint.runtime.command.torch_is_missing", lambda: True)
    result = run("--demo")
    assert result.exit_code == 2
    assert result.stderr == "rebindlint: the runtime half needs torch: pip install 'rebindlint[runtime]'\n"


def test_help_is_there() -> None:
    assert "--case PKG.MODULE:FUNCTION" in run("-h").output
