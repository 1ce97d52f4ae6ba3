"""The table of hooks: roots, the cells that they write, a verdict under each protocol."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rebindlint.audit import audit
from rebindlint.cli import main
from rebindlint.config import Config
from rebindlint.pipeline import Request, find_files
from rebindlint.report.audit import render

HOOKS = """\
import torch
from torch import nn
from torch.nn import Parameter
from vllm.model_executor.layers import kernel


class Kernel:
    def __init__(self):
        self.table = torch.zeros(8)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = Parameter(torch.empty(4, 4))
        self.state = torch.zeros(4)
        self.kernel = None

    def process_weights_after_loading(self, act_dtype: torch.dtype):
        self.derived = self.weight.t().contiguous()
        self.state.copy_(self.weight.sum(0))
        self.kernel = Kernel()
        print(Kernel().table.shape)

    def forward(self, x):
        return x @ self.derived + self.state + self.kernel.table


class Method:
    def create_weights(self, layer):
        layer.register_parameter("weight", Parameter(torch.empty(4, 4), requires_grad=False))
        layer.register_parameter("scale", Parameter(torch.empty(4), requires_grad=False))
        layer.register_parameter("spare", Parameter(torch.empty(4), requires_grad=False))

    def process_weights_after_loading(self, layer: nn.Module) -> None:
        layer.weight = Parameter(layer.weight.t().contiguous(), requires_grad=False)
        layer.scale.data = layer.scale.sqrt()
        del layer.spare

    def apply(self, layer, x):
        return x @ layer.weight * layer.scale


class Model(nn.Module):
    def process_weights_after_loading(self):
        self.count = 1

    def load_weights(self, weights):
        self.finalize_all()

    def finalize_all(self):
        self.ready = True


class Once:
    def process_weights_after_loading(self, layer):
        if self.done:
            raise RuntimeError("cannot be loaded twice")
        self.done = True
        layer.packed = layer.weight.t().contiguous()

    def __init__(self):
        self.done = False

    def apply(self, layer, x):
        return x @ layer.packed

    def after_all(self, layer):
        layer.weight.zero_()
"""


class _Main:
    name = "rebindlint"

    def main(self, args: list[str], prog_name: str, **extra: object) -> None:
        main(args)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(_Main(), list(arguments))  # type: ignore[arg-type]  # main is called like a command


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    (tmp_path / "pyproject.toml").write_text('[tool.rebindlint]\njobs = 1\nhooks = ["after_all"]\n')
    (tmp_path / "hooks.py").write_text(HOOKS)
    return tmp_path


def row(text: str) -> int:
    """The line of HOOKS on which the text first stands."""
    return next(number for number, line in enumerate(HOOKS.splitlines(), 1) if text in line)


def hooks(*arguments: str) -> dict[str, dict[str, object]]:
    result = run("hooks", *arguments, "--output-format", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    return {record["hook"]: record for record in json.loads(result.stdout)}


def cells(record: dict[str, object]) -> dict[tuple[str, int], tuple[str, ...]]:
    found = record["cells"]
    assert isinstance(found, list)
    return {(cell["attribute"], cell["location"]["row"]): tuple(cell["how"]) for cell in found}


# ---- roots


def test_every_hook_is_listed_with_its_class_place_and_kind(project: Path) -> None:
    found = hooks()
    assert {name: (record["class"], record["kind"]) for name, record in found.items()} == {
        "Layer.process_weights_after_loading": ("hooks.Layer", "module"),
        "Method.process_weights_after_loading": ("hooks.Method", "method"),
        "Model.process_weights_after_loading": ("hooks.Model", "model"),
        "Model.finalize_all": ("hooks.Model", "loading"),
        "Once.process_weights_after_loading": ("hooks.Once", "method"),
        "Once.after_all": ("hooks.Once", "configured"),
    }
    assert found["Model.finalize_all"]["filename"] == "hooks.py"
    assert found["Model.finalize_all"]["location"] == {"row": row("def finalize_all"), "column": 5}


def test_hooks_of_other_files_are_context_only(project: Path) -> None:
    (project / "other.py").write_text(HOOKS)
    assert len(json.loads(run("hooks", "other.py", "--output-format", "json").stdout)) == 6
    assert len(json.loads(run("hooks", "--output-format", "json").stdout)) == 12


# ---- cells


def test_the_cells_that_a_hook_writes_are_listed_with_line_and_way(project: Path) -> None:
    found = hooks()
    assert cells(found["Layer.process_weights_after_loading"]) == {
        ("self.kernel.table", row("self.table =")): ("bound",),
        ("self.derived", row("self.derived =")): ("bound",),
        ("self.state", row("self.state.copy_")): ("copied",),
        ("self.kernel", row("self.kernel = Kernel()")): ("built",),
    }
    written = cells(found["Method.process_weights_after_loading"])
    assert written[("layer.weight", row("layer.weight = Parameter"))] == ("registered",)
    assert written[("layer.scale", row("layer.scale.data"))] == ("moved",)
    assert written[("layer.spare", row("del layer.spare"))] == ("deleted",)
    assert cells(found["Model.finalize_all"]) == {}


# ---- verdicts


def test_the_verdict_is_told_for_each_protocol(project: Path) -> None:
    found = hooks()
    assert found["Layer.process_weights_after_loading"]["verdict"] == {
        "direct": "RB101, RB201",
        "layerwise": "RB101, RB201",
    }
    assert found["Method.process_weights_after_loading"]["verdict"] == {"direct": "RB102, RB103", "layerwise": "clean"}
    assert found["Model.finalize_all"]["verdict"] == {"direct": "clean", "layerwise": "clean"}
    verdict = found["Once.process_weights_after_loading"]["verdict"]
    assert isinstance(verdict, dict)
    assert verdict["direct"] == "refuses reload"


def test_a_cell_carries_the_codes_of_its_own_statement(project: Path) -> None:
    record = hooks()["Layer.process_weights_after_loading"]
    codes = {cell["attribute"]: cell["codes"]["direct"] for cell in record["cells"]}  # type: ignore[attr-defined]
    assert codes == {"self.kernel.table": [], "self.derived": ["RB101"], "self.state": [], "self.kernel": ["RB201"]}


def test_one_protocol_can_be_asked_for(project: Path) -> None:
    found = hooks("--reload", "direct")
    assert found["Method.process_weights_after_loading"]["verdict"] == {"direct": "RB102, RB103"}


def test_what_a_check_says_and_what_the_table_says_agree(project: Path) -> None:
    checked = {
        (r["hook"], r["code"], p) for r in json.loads(run("--output-format", "json").stdout) for p in r["reload"]
    }
    listed = {
        (name, code, protocol)
        for name, record in hooks().items()
        for protocol, codes in record["codes"].items()  # type: ignore[attr-defined]
        for code in codes
    }
    assert listed == checked


def test_suppressed_findings_are_marked_and_rules_that_are_off_are_not_asked(project: Path) -> None:
    line = "        self.derived = self.weight.t().contiguous()"
    (project / "hooks.py").write_text(HOOKS.replace(line, line + "  # rebindlint: ignore[RB101] on the host"))
    (project / "pyproject.toml").write_text('[tool.rebindlint]\njobs = 1\nignore = ["RB201"]\n')
    assert hooks()["Layer.process_weights_after_loading"]["verdict"] == {
        "direct": "RB101 (suppressed)",
        "layerwise": "RB101 (suppressed)",
    }


# ---- the command


def test_the_table_is_plain_when_piped(project: Path) -> None:
    result = run("hooks")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["hook,", "cell", "line", "kind", "direct", "layerwise"]
    assert lines[1].split() == [
        "Layer.process_weights_after_loading", f"hooks.py:{row('def process_weights')}", "module", "RB101,", "RB201", "RB101,", "RB201",
    ]  # fmt: skip
    assert any(line.split() == ["self.state", f":{row('self.state.copy_')}", "copied", "-", "-"] for line in lines)
    assert "\x1b" not in result.stdout
    assert not any(line != line.rstrip() for line in lines)
    assert lines[-1] == "6 hooks: 3 clean under direct reload, 4 clean under layerwise reload."
    assert run("hooks", "--quiet").stdout == "\n".join(lines[:-2]) + "\n"


def test_a_terminal_gets_colour_and_its_own_width(project: Path) -> None:
    config = Config(root=project, jobs=1)
    found = audit(find_files(Request(("hooks.py",), config)), config)
    coloured = render(found, colour=True, width=80)
    assert "\x1b[1;31mRB101" in coloured
    plain = render(found, colour=False, width=80)
    assert max(map(len, plain.splitlines()[:-1])) <= 80


def test_without_hooks_that_is_said(project: Path) -> None:
    (project / "empty.py").write_text("x = 1\n")
    assert run("hooks", "empty.py").stdout == "No hooks.\n"
    assert json.loads(run("hooks", "empty.py", "--output-format", "json").stdout) == []


def test_processes_and_one_process_give_the_same_table(project: Path) -> None:
    for number in range(4):
        (project / f"more{number}.py").write_text(HOOKS)
    assert run("hooks", "--jobs", "2").stdout == run("hooks", "--jobs", "1").stdout


def test_exclusions_count(project: Path) -> None:
    (project / "third_party").mkdir()
    (project / "third_party" / "hooks.py").write_text(HOOKS)
    assert "third_party" in run("hooks").stdout
    assert "third_party" not in run("hooks", "--extend-exclude", "third_party").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.py"], "missing.py: no such file or folder"),
        (["-"], "hooks reads files and folders, not standard input"),
        (["--config", "missing.toml"], "missing.toml: cannot be read"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_2(project: Path, arguments: list[str], message: str) -> None:
    result = run("hooks", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"rebindlint: {message}")
    assert result.stderr.count("\n") == 1


def test_a_selector_in_the_configuration_that_names_no_rule_is_refused(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.rebindlint]\nselect = ["RB9"]\n')
    for command in (["hooks"], ["explain", "RB101", "hooks.py:3"]):
        result = run(*command)
        assert result.exit_code == 2
        assert "unknown rule code `RB9` in select" in result.stderr
