"""Calls that could not be entered: listed on demand, counted otherwise; and hooks in which arms were sampled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rebindlint.cli import main
from rebindlint.config import Config
from rebindlint.discover import discover
from rebindlint.execution import execute_hooks
from rebindlint.execution.run import Executed
from rebindlint.execution.unresolved import Assumption, Unresolved, merged
from rebindlint.index import build_index
from rebindlint.model import Place, Position

HOOKS = """\
import kernels
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.empty(4, 4))

    def process_weights_after_loading(self):
        kernels.check_shape(self.weight)
        kernels.shuffle(self.weight)
        mode = kernels.mode(self.config)
        if mode == "a":
            kernels.note("a")
        self.packed = kernels.fold(self.weight)
        self.scale = kernels.zeros_like(self.weight)

    def forward(self, x):
        return x @ self.packed * self.scale
"""
CLEAN = """\
import kernels


class Layer:
    def process_weights_after_loading(self, layer):
        kernels.configure(self.config)
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
    (tmp_path / "clean.py").write_text(CLEAN)
    return tmp_path


def executed(root: Path) -> Executed:
    config = Config(root=root, jobs=1)
    return execute_hooks(build_index(discover(["hooks.py"], config, cwd=root).context, config), config, jobs=1)


def test_each_call_is_listed_once_with_what_was_assumed(project: Path) -> None:
    found = {(call.place.start.row, call.callee): call.assumed for call in executed(project).unresolved}
    assert {key: assumed for key, assumed in found.items() if key[1] != "kernels.configure"} == {
        (13, "kernels.check_shape"): (Assumption.HARMLESS,),
        (14, "kernels.shuffle"): (Assumption.WRITES,),
        (15, "kernels.mode"): (Assumption.SAME,),
        (17, "kernels.note"): (Assumption.SAME,),
        (18, "kernels.fold"): (Assumption.MAYBE_ALLOCATES,),
        (19, "kernels.zeros_like"): (Assumption.ALLOCATES,),
    }


def test_what_is_called_like_a_class_is_taken_to_hold_what_it_is_given(project: Path) -> None:
    (project / "hooks.py").write_text(HOOKS.replace("kernels.fold", "kernels.Folded"))
    found = {call.callee: call.assumed for call in executed(project).unresolved}
    assert found["kernels.Folded"] == (Assumption.HOLDS,)


def test_what_several_paths_assumed_at_one_place_is_put_together() -> None:
    place = Place("a.py", Position(1, 1), Position(1, 4))
    calls = [
        Unresolved(place, "f", "k.f", (Assumption.MAYBE_ALLOCATES,), 2),
        Unresolved(place, "f", "k.f", (Assumption.SAME,), 1),
    ]
    assert merged(calls) == (Unresolved(place, "f", "k.f", (Assumption.SAME, Assumption.MAYBE_ALLOCATES), 3),)


def test_the_notes_stand_among_the_findings_in_the_order_of_the_source(project: Path) -> None:
    result = run("--show-unresolved", "--output-format", "concise", "hooks.py")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert [line.split(": ")[1].split(" ")[0] for line in lines[:-1]] == ["RB004"] * 4 + ["RB101", "RB004"] * 2
    assert lines[5] == (
        "hooks.py:18:23: RB004 `kernels.fold` could not be entered; assumed that it returns a newly allocated tensor, "
        "if it is a tensor at all"
    )
    assert lines[-1].startswith("Found 2 hazards (1 error, 1 warning, 6 notes) in 1 file.")


def test_text_and_json_show_them_too(project: Path) -> None:
    text = run("--show-unresolved", "hooks.py").stdout
    assert "RB004 `kernels.shuffle` could not be entered; assumed that it writes into the first tensor" in text
    assert "note: severity note" in text
    records = json.loads(run("--show-unresolved", "--output-format", "json", "hooks.py").stdout)
    notes = [record for record in records if record["code"] == "RB004"]
    assert len(notes) == 6
    assert {record["severity"] for record in notes} == {"note"}
    assert notes[0]["name"] == "unresolved-call"
    assert (notes[0]["location"], notes[0]["fix"]) == ({"row": 13, "column": 9}, None)


def test_they_never_change_the_exit_code(project: Path) -> None:
    result = run("--show-unresolved", "clean.py")
    assert result.exit_code == 0
    assert result.stdout.endswith("Found 0 hazards (0 errors, 0 warnings, 1 note) in 1 file.\n")


def test_only_those_of_the_given_files_are_listed_and_counted(project: Path) -> None:
    result = run("--show-unresolved", "--output-format", "concise", "-v", "clean.py")
    assert "hooks.py" not in result.stdout
    assert "rebindlint: 1 call could not be entered (--show-unresolved lists them)\n" in result.stderr


def test_without_the_option_verbose_counts_them_from_the_cache_too(project: Path) -> None:
    for _ in range(2):
        result = run("-v", "hooks.py")
        assert "RB004" not in result.stdout
        assert "rebindlint: 6 calls could not be entered (--show-unresolved lists them)\n" in result.stderr
    assert "result found in the cache" in result.stderr
    assert "RB004" in run("--show-unresolved", "hooks.py").stdout  # the cached result holds them as well


@pytest.mark.parametrize("silencing", ["--ignore=RB004", "comment"])
def test_they_can_be_silenced_and_the_comment_is_not_called_unused_without_the_option(
    project: Path, silencing: str
) -> None:
    comment = "kernels.shuffle(self.weight)  # rebindlint: ignore[RB004] writes in place"
    (project / "hooks.py").write_text(HOOKS.replace("kernels.shuffle(self.weight)", comment))
    shown = run("--show-unresolved", "hooks.py", *([silencing] if silencing.startswith("--") else []))
    assert "`kernels.shuffle`" not in shown.stdout
    for options in ([], ["--show-unresolved"]):
        assert "RB001" not in run(*options, "hooks.py").stdout


def test_selecting_other_rules_does_not_hide_what_was_asked_for(project: Path) -> None:
    shown = run("--show-unresolved", "--select", "RB204", "--output-format", "concise", "hooks.py").stdout
    assert shown.count("RB004") == 6
    assert "RB101" not in shown


def test_a_declared_function_is_no_longer_unresolved(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.rebindlint]\njobs = 1\nallocators = ["kernels.fold"]\n')
    assert "`kernels.fold`" not in run("--show-unresolved", "--select", "RB004", "hooks.py").stdout


# ---- sampled arms


def many_arms(count: int) -> str:
    arms = "\n".join(f"        if self.config.flag{i}:\n            print({i})" for i in range(count))
    return f"""\
class Layer:
    def process_weights_after_loading(self, layer):
{arms}
        self.config.ready = True
"""


@pytest.mark.parametrize(("arms", "sampled"), [(2, 0), (30, 1)])
def test_hooks_with_sampled_arms_are_counted(project: Path, arms: int, sampled: int) -> None:
    (project / "clean.py").unlink()
    (project / "hooks.py").write_text(many_arms(arms))
    assert executed(project).sampled == sampled
    said = "rebindlint: 1 hook: of the arms that bind nothing a sample was taken\n"
    assert (said in run("-v", "hooks.py").stderr) is bool(sampled)
