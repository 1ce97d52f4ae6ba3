"""Explanations: how a finding came about, from the command line to the words."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rebindlint.cli import main
from rebindlint.execution.account import Answer
from rebindlint.explain import Location
from rebindlint.model import Place, Position, RebindlintError
from rebindlint.report.words import answered

HOOKS = """\
import torch
from torch import nn
from kernels import describe


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.done = False
        self.weight = nn.Parameter(torch.empty(4, 4))

    def process_weights_after_loading(self, act_dtype: torch.dtype):
        if self.config.plain:
            return
        if not self.done:
            self.cached = self.weight.t().contiguous()
            self.done = True
        self._rest(self.config.fast)

    def _rest(self, fast):
        if fast:
            self.transposed = self.weight.t().contiguous()
        if self.config.late:
            self.config.seen = True
        self.packed = describe(self.weight)

    def forward(self, x):
        return x @ self.transposed, self.cached, self.packed
"""
METHOD = """\
import torch
from torch import nn
from torch.nn import Parameter
from vllm.model_executor.layers import kernel


class Method:
    def create_weights(self, layer):
        layer.register_parameter("weight", Parameter(torch.empty(4, 4), requires_grad=False))

    def process_weights_after_loading(self, layer: nn.Module) -> None:
        layer.weight = Parameter(layer.weight.t().contiguous(), requires_grad=False)

    def apply(self, layer, x):
        return x @ layer.weight
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
    (tmp_path / "pyproject.toml").write_text("[tool.rebindlint]\njobs = 1\n")
    (tmp_path / "hooks.py").write_text(HOOKS)
    return tmp_path


def sections(text: str) -> dict[str, list[str]]:
    """The lines of each part by its title."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in text.splitlines():
        if line[:1].isalpha() and ": " not in line:
            title = line
        elif line.startswith("  ") and title:
            found.setdefault(title, []).append(line.strip())
    return found


# ---- the parts


def test_a_rebound_attribute_is_told_from_the_hook_to_the_cell(project: Path) -> None:
    result = run("explain", "RB101", "hooks.py:23")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("RB101 attribute-rebind: `self.transposed` is bound to a new tensor")
    parts = sections(result.stdout)
    assert parts["Verdict"][0].startswith("error: it holds under direct reload, by which the tree's own engine reloads")
    assert parts["Verdict"][1] == "direct and layerwise reload: the cell shows other memory than was captured"
    assert parts["Calls"] == [
        "in hook Layer.process_weights_after_loading (hooks.py:19): self._rest(self.config.fast)",
        "called Layer._rest (hooks.py:23): self.transposed = self.weight.t().contiguous()",
    ]
    assert "hooks.py:14  `self.config.plain` is false: assumed, in both runs" in parts["Decisions"]
    assert "hooks.py:22  `fast` is true: assumed, in both runs" in parts["Decisions"]
    assert not [line for line in parts["Decisions"] if line.startswith("hooks.py:24")]
    cell = parts["Cell `self.transposed`"]
    assert cell[0].startswith("at capture: memory that the first run allocated, a plain tensor, bound at hooks.py:23")
    assert cell[0].endswith("holds values of the first load")
    assert cell[1].startswith("at the check, direct and layerwise reload: memory that the second run allocated")
    assert cell[1].endswith("the captured memory is owned by nothing any more, holding values of the first load")
    assert parts["Fix"][0] == "Bind `self.transposed` once, then copy into it (safe, applied by --fix)"


def test_verbose_also_shows_decisions_off_the_way(project: Path) -> None:
    shown = sections(run("explain", "RB101", "hooks.py:23", "--verbose").stdout)["Decisions"]
    assert any(line.startswith("hooks.py:24  `self.config.late` is ") for line in shown)
    assert not any("off the way" in line for line in shown)


def test_a_guard_is_shown_to_turn_between_the_runs(project: Path) -> None:
    result = run("explain", "one-shot-guard", "hooks.py:16:9")
    parts = sections(result.stdout)
    turned = "hooks.py:16  `not self.done` is true in the first run and false in the second, by what the first run left"
    assert turned in parts["Decisions"]
    assert parts["Calls"][-1].startswith("binds `self.cached` in the first run only (hooks.py:17)")
    assert parts["Cell `self.cached`"][1] == (
        "at the check, direct and layerwise reload: the captured memory; it holds values of the first load"
    )
    assert parts["Fix"][0].startswith("none is offered.")


def test_a_value_that_may_be_no_tensor_is_why_it_is_a_warning(project: Path) -> None:
    parts = sections(run("explain", "RB101", "hooks.py:26").stdout)
    assert parts["Verdict"][0].startswith("warning: it holds under direct reload")
    assert parts["Verdict"][0].endswith("nothing says that what is bound is a tensor at all")


def test_a_protocol_that_saves_the_cell_is_told_apart(project: Path) -> None:
    (project / "method.py").write_text(METHOD)
    result = run("explain", "RB103", "method.py:12")
    assert result.exit_code == 0, result.stderr
    parts = sections(result.stdout)
    assert parts["Verdict"] == [
        "warning: it holds under direct reload only, not under layerwise reload, by which the tree's own engine reloads: it is vLLM, or imports it",
        "layerwise reload: no hazard: what is registered is copied back into the captured memory by name",
        "direct reload: the cell shows other memory than was captured",
    ]
    cell = parts["Cell `layer.weight`"]
    assert cell[0].startswith("at capture: memory that the first run allocated, a registered parameter, registered at")
    assert cell[1] == "at the check, layerwise reload: the captured memory; it holds values of the second load"
    asked = sections(run("explain", "RB103", "method.py:12", "--reload", "direct").stdout)
    assert asked["Verdict"][0] == "error: it holds under direct reload, which was asked for"


def test_a_loader_that_refuses_is_told_from_a_hook_that_raises(project: Path) -> None:
    """A plain attribute stands under the parameter's name: this engine restores over it, and no loader finds the parameter."""
    folder = project / "model_loader" / "reload"
    folder.mkdir(parents=True)
    for package in (folder.parent, folder):
        (package / "__init__.py").touch()
    (folder / "meta.py").write_text(
        "def restore_layer_on_meta(layer, info):\n    if hasattr(layer, info.name):\n        delattr(layer, info.name)\n"
    )
    bound = "layer.weight = Parameter(layer.weight.t().contiguous(), requires_grad=False)"
    packed = "packed = layer.weight.t().contiguous()\n        del layer.weight\n        layer.weight = packed"
    assert bound in METHOD
    (project / "method.py").write_text(METHOD.replace(bound, packed))
    result = run("explain", "RB101", "method.py:14")
    assert result.exit_code == 0, result.stderr
    assert sections(result.stdout)["Verdict"][-1] == (
        "direct reload: no hazard: after the first run the weights cannot be loaded again, so reloading fails closed"
    )


def test_what_run_time_code_keeps_is_told_from_its_guard(project: Path) -> None:
    (project / "lazy.py").write_text(
        "import torch\n"
        "from torch import nn\n\n\n"
        "class Layer(nn.Module):\n"
        "    def __init__(self) -> None:\n"
        "        super().__init__()\n"
        "        self.weight = nn.Parameter(torch.zeros(3, 3))\n"
        "        self.packed: torch.Tensor | None = None\n\n"
        "    def forward(self, x: torch.Tensor) -> torch.Tensor:\n"
        "        if self.packed is None:\n"
        "            self.packed = torch.cat([self.weight, self.weight])\n"
        "        return x @ self.packed\n",
        encoding="utf-8",
    )
    result = run("explain", "RB205", "lazy.py:12")
    assert result.exit_code == 0, result.stderr
    assert "`self.packed is None` is true in the first run and false in the second" in result.stdout
    assert "the captured memory; it holds values of the first load" in result.stdout


def test_a_workspace_that_run_time_code_makes_is_shown_where_it_is_made(project: Path) -> None:
    (project / "workspace.py").write_text(
        "import torch\n\n\n"
        "class Method:\n"
        "    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:\n"
        "        self.ones = None\n\n"
        "    def apply(self, layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:\n"
        "        if self.ones is None:\n"
        "            self.ones = torch.ones_like(x)\n"
        "        return x * self.ones\n",
        encoding="utf-8",
    )
    cell = sections(run("explain", "RB106", "workspace.py:6").stdout)["Cell `self.ones`"]
    assert cell[0].startswith(
        "at capture: memory that run-time code allocated when it first needed it, a plain tensor, bound at workspace.py:10"
    )
    assert cell[1].startswith("at the check, direct and layerwise reload: None, released at workspace.py:6")


def test_a_statement_that_is_wrong_by_itself_has_no_cell_to_compare(project: Path) -> None:
    (project / "overlap.py").write_text(
        METHOD.replace(
            "layer.weight = Parameter(layer.weight.t().contiguous(), requires_grad=False)",
            "layer.weight.copy_(layer.weight.t())",
        )
    )
    parts = sections(run("explain", "RB302", "overlap.py:12").stdout)
    assert parts["Verdict"][1].endswith("the captured memory does not hold what the new weights demand")
    assert parts["Cell `layer.weight`"][0].startswith("at capture: memory that loading fills")


def test_several_findings_of_one_line_are_all_explained(project: Path) -> None:
    (project / "two.py").write_text(
        HOOKS.replace("self.cached = ", "self.cached = self.other = ").replace("if not", "if")
    )
    text = (project / "two.py").read_text().replace("self.cached, self", "self.cached, self.other, self")
    (project / "two.py").write_text(text.replace("        if self.done:", "        if True:"))
    result = run("explain", "RB101", "two.py:17")
    assert result.stdout.count("RB101 attribute-rebind: ") == 2


def test_the_cache_does_not_change_the_explanation(project: Path) -> None:
    first = run("explain", "RB101", "hooks.py:23")
    run("check", "hooks.py")
    assert (project / ".rebindlint_cache").is_dir()
    again = run("explain", "RB101", "hooks.py:23")
    assert again.stdout == first.stdout == run("explain", "RB101", "hooks.py:23", "--no-cache").stdout


def test_a_silenced_finding_is_explained_and_said_to_be_silenced(project: Path) -> None:
    line = "            self.transposed = self.weight.t().contiguous()"
    (project / "hooks.py").write_text(HOOKS.replace(line, line + "  # rebindlint: ignore[RB101] tried"))
    assert "a check does not report it: a comment suppresses it" in run("explain", "RB101", "hooks.py:23").stdout
    (project / "pyproject.toml").write_text('[tool.rebindlint]\njobs = 1\nignore = ["RB204"]\n')
    said = "a check does not report it: the configuration leaves the rule out here"
    assert said in run("explain", "RB204", "hooks.py:16").stdout


def test_diagnostics_that_no_execution_came_to_are_explained_as_far_as_they_go(project: Path) -> None:
    unresolved = run("explain", "RB004", "hooks.py:26").stdout
    assert "a check does not report it: it is shown with --show-unresolved only" in unresolved
    assert "no execution of a hook leads here" in unresolved
    (project / "unused.py").write_text("x = 1  # rebindlint: ignore[RB101] nothing\n")
    assert "it depends on no reload protocol" in run("explain", "RB001", "unused.py:1").stdout


def test_json_is_the_record_of_the_report_with_an_explanation(project: Path) -> None:
    (found,) = json.loads(run("explain", "RB101", "hooks.py:23", "--output-format", "json").stdout)
    (reported,) = [
        record
        for record in json.loads(run("--output-format", "json", "hooks.py").stdout)
        if record["location"]["row"] == 23
    ]
    explanation = found.pop("explanation")
    assert found == reported
    assert explanation["silenced"] is None
    direct, layerwise = explanation["paths"]
    assert (direct["reload"], layerwise["reload"], direct["holds"]) == ("direct", "layerwise", True)
    conditions = {d["condition"]: d for d in direct["decisions"]}
    assert conditions["fast"] == {
        "filename": "hooks.py", "row": 22, "condition": "fast", "first_run": True, "second_run": True, "assumed": True, "aside": False,
    }  # fmt: skip
    assert conditions["not self.done"]["second_run"] is False
    assert conditions["self.config.late"]["aside"] is True


# ---- nothing to explain


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["RB101", "hooks.py:14"], "no RB101 at hooks.py:14; near it: RB204 at line 16 (`self.cached`), RB101 at line 23 (`self.transposed`), RB101 at line 26 (`self.packed`)"),
        (["RB301", "hooks.py:23"], "no RB301 at hooks.py:23; near it: RB101 at line 23 (`self.transposed`), RB101 at line 26 (`self.packed`), RB204 at line 16 (`self.cached`)"),
        (["RB101", "clean.py:1"], "no RB101 at clean.py:1; nothing is found in the file"),
        (["RB204", "hooks.py:9999"], "no RB204 at hooks.py:9999; near it: RB204 at line 16 (`self.cached`)"),
        (["RB301", "hooks.py:9999"], "no RB301 at hooks.py:9999, nor anything near it"),
        (["RB101", "missing.py:1"], "missing.py: no such file or folder"),
        (["RB101", "hooks.py"], "`hooks.py` is no place: write path:line, as in model.py:12"),
        (["RB101", "hooks.py:0"], "`hooks.py:0` is no place: write path:line, as in model.py:12"),
        (["RB101", "folder:3"], "folder is a folder, and a finding lies in a file"),
        (["RB999", "hooks.py:3"], "unknown rule `RB999`"),
        (["RT101", "hooks.py:3"], "RT101 is found on a live model, not at a place in the source"),
        (["RB101", "--reload", "direct"], "--reload goes with a finding: add path:line"),
    ],
)  # fmt: skip
def test_without_a_match_one_line_says_what_there_is(project: Path, arguments: list[str], message: str) -> None:
    (project / "clean.py").write_text("x = 1\n")
    (project / "folder").mkdir()
    result = run("explain", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"rebindlint: {message}")
    assert result.stderr.count("\n") == 1


def test_a_place_may_have_a_column_and_colons_in_its_path() -> None:
    assert Location.parse("a/b.py:12:5") == Location("a/b.py", 12)
    assert Location.parse("C:/b.py:12") == Location("C:/b.py", 12)
    with pytest.raises(RebindlintError, match="is no place"):
        Location.parse("12")


# ---- words


@pytest.mark.parametrize(
    ("question", "answer", "words"),
    [
        ("hasattr(layer,bias)", 1, "`hasattr(layer,bias)` is true"),
        ("self.n Lt 3", 0, "`self.n < 3` is false"),
        ("(a FloorDiv b) Mod 32 == 0", 1, "`(a // b) % 32 == 0` is true"),
        ("init self:Layer.scale", 1, "`Layer.scale` starts with what assignment 2 of 2 gives it"),
        ("init self.scale?", 0, "`self.scale` starts with the second arm of its conditional expression"),
        ("import deep_gemm", 0, "`import deep_gemm` fails"),
        ("?", 1, "a condition that nothing in the tree decides is true"),
    ],
)
def test_questions_are_put_in_words(question: str, answer: int, words: str) -> None:
    place = Place("a.py", Position(1, 1), Position(1, 1))
    assert answered(Answer(place, question, answer)) == words


# ---- pages


@pytest.mark.parametrize("name", ["RT101", "rt101", "held-dead"])
def test_runtime_codes_have_pages_without_torch(name: str, project: Path) -> None:
    program = f"""
import sys
sys.modules["torch"] = None  # an import of it fails
from rebindlint.cli import main
main(["explain", {name!r}])
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("# held-dead (RT101)\n\n## What it does\n")


def test_a_runtime_code_that_does_not_exist_is_one_line(project: Path) -> None:
    result = run("explain", "RT990")
    assert (result.exit_code, result.stderr) == (2, "rebindlint: unknown rule `RT990` (did you mean `RT110`?)\n")
