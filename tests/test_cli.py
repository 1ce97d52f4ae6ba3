"""The command line as a user meets it: arguments, exit codes, streams, mistakes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from fake_engine import FakeEngine

from rebindlint import pipeline, registry
from rebindlint.catalogue import catalogue
from rebindlint.cli import cli, main

HOOK = """\
import torch
from torch import nn


class Layer(nn.Module):
    def process_weights_after_loading(self, dtype):
        self.transposed = self.weight.t().contiguous()

    def forward(self, x):
        return x @ self.transposed
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "pyproject.toml").write_text("[tool.rebindlint]\n")
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "a.py").write_text("HAZARD\nx_HAZARD_SAFE\nNOTE\n")
    return tmp_path


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    return FakeEngine().install(monkeypatch)


def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
    """Through ``main``, which turns every error into a line and an exit code."""
    return CliRunner().invoke(_Main(), list(arguments), input=stdin)  # type: ignore[arg-type]  # main is called like a command


class _Main:
    name = "rebindlint"

    def main(self, args: list[str], prog_name: str, **extra: object) -> None:
        main(args)


def real(
    *arguments: str, cwd: Path, stdin: bytes | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """A process of its own with the real engine."""
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")} | (env or {})
    command = [sys.executable, "-m", "rebindlint", *arguments]
    return subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, env=environment, check=False)


# ---- what is linted


@pytest.mark.parametrize("arguments", [[], ["."], ["check"], ["check", "pkg"], ["--no-cache", "pkg"], ["pkg/a.py"]])
def test_check_is_the_default_command_and_the_current_folder_the_default_path(
    project: Path, engine: FakeEngine, arguments: list[str]
) -> None:
    result = run(*arguments)
    assert result.exit_code == 1
    assert result.stdout.startswith("RB101 `x` gets a new tensor\n --> pkg/a.py:1:1\n")
    assert result.stdout.endswith("Found 2 hazards (2 errors, 0 warnings, 1 note) in 1 file. 1 fixable with --fix.\n")
    assert result.stderr == ""


def test_a_path_that_is_named_like_a_command_can_be_given(project: Path, engine: FakeEngine) -> None:
    (project / "rules").mkdir()
    (project / "rules" / "b.py").write_text("HAZARD\n")
    assert "rules/b.py:1:1" in run("./rules", "--output-format", "concise").stdout
    assert "attribute-rebind" in run("rules").stdout


def test_affected_and_excludes_reach_the_pipeline(project: Path, engine: FakeEngine) -> None:
    (project / "pkg" / "b.py").write_text("HAZARD  # via pkg/a.py\n")
    concise = ("--output-format", "concise", "-q")
    assert "pkg/b.py" not in run(*concise, "pkg/a.py").stdout
    assert "pkg/b.py" in run(*concise, "--affected", "pkg/a.py").stdout
    assert (
        run(*concise, "--extend-exclude", "a.py,other", "pkg").stdout == "pkg/b.py:1:1: RB101 `x` gets a new tensor\n"
    )
    assert run(*concise, "--force-exclude", "--exclude", "a.py", "pkg/a.py").exit_code == 0


def test_nothing_to_lint_is_said(project: Path, engine: FakeEngine) -> None:
    (project / "empty").mkdir()
    result = run("empty")
    assert (result.exit_code, result.stdout, result.stderr) == (
        0,
        "",
        "rebindlint: no Python files under the given paths\n",
    )
    assert run("-q", "empty").stderr == ""


# ---- exit codes


def test_exit_codes(project: Path, engine: FakeEngine) -> None:
    clean = project / "pkg" / "clean.py"
    clean.write_text("x = 1\n")
    (project / "pkg" / "note.py").write_text("NOTE\n")
    (project / "pkg" / "safe.py").write_text("x_HAZARD_SAFE\n")
    assert run("pkg/clean.py").exit_code == 0
    assert run("pkg/note.py").exit_code == 0
    assert run("pkg/a.py").exit_code == 1
    assert run("--exit-zero", "pkg/a.py").exit_code == 0
    assert run("pkg/clean.py", "nowhere").exit_code == 2
    assert run("--exit-zero", "nowhere").exit_code == 2
    assert run("--diff", "pkg/clean.py").exit_code == 0
    assert run("--diff", "pkg/safe.py").exit_code == 1
    assert run("--fix", "--exit-non-zero-on-fix", "pkg/safe.py").exit_code == 1
    assert run("--fix", "pkg/safe.py").exit_code == 0
    assert run("--fix", "--exit-non-zero-on-fix", "pkg/safe.py").exit_code == 0
    assert run("--fix-only", "pkg/a.py").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nowhere.py"], "nowhere.py: no such file or folder"),
        (["--select", "RB111"], "unknown rule code `RB111` in select (did you mean `RB101`?)"),
        (
            ["--select", "attribute"],
            "Invalid value for '--select': holds `attribute`, which is neither a rule code nor a prefix of one",
        ),
        (["--ignore", "RB101,X"], "unknown rule code `X` in ignore"),
        (["--no-such-option"], "No such option"),
        (["--reload", "fast"], "Invalid value for '--reload': 'fast' is not one of"),
        (["--target-version", "0.26"], "Invalid value for '--target-version': holds `0.26`"),
        (["--jobs", "-1"], "Invalid value for '-j' / '--jobs': -1 is not in the range x>=0."),
        (["--config", "none.toml"], "none.toml: cannot be read: No such file or directory"),
        (["--select", ""], "Invalid value for '--select': holds no rule code"),
        (["--target-version", "sglang==0.5"], "Invalid value for '--target-version': holds `sglang==0.5`"),
        ([""], "a path is empty"),
        (["explian", "RB101"], "explian: no such file, folder or command (did you mean `rebindlint explain`?)"),
        (["--diff", "--statistics"], "--statistics needs a report, and --diff writes none"),
        (["--fix-only", "-o", "report.txt"], "--output-file needs a report, and --fix-only writes none"),
        (["explain", "RB9999"], "unknown rule `RB9999`"),
        (["explain"], "Missing argument 'CODE'."),
        (["-", "pkg"], "standard input (`-`) cannot be linted together with files"),
        (["--stdin-filename", "a.py"], "--stdin-filename needs `-` as the path"),
        (
            ["--diff", "--output-format", "json"],
            "--diff prints a diff: it cannot be combined with --output-format json",
        ),
        (
            ["-o", "no/such/folder/report.txt", "pkg"],
            "no/such/folder/report.txt: cannot be written: No such file or directory",
        ),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    project: Path, engine: FakeEngine, arguments: list[str], line: str
) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"rebindlint: {line}")
    assert result.stderr.count("\n") == 1


def test_a_mistake_in_the_configuration_names_the_file(project: Path, engine: FakeEngine) -> None:
    (project / "pyproject.toml").write_text("[tool.rebindlint]\nselct = []\n")
    result = run(".")
    assert (result.exit_code, result.stderr) == (
        2,
        "rebindlint: pyproject.toml: unknown key `selct` (did you mean `select`?)\n",
    )
    (project / "pyproject.toml").write_text("[tool.rebindlint]\nignore = ['RB777']\n")
    assert run(".").stderr.startswith("rebindlint: pyproject.toml: unknown rule code `RB777` in ignore")
    assert run("--isolated", ".").exit_code == 1


def test_unreadable_files_are_failures_and_the_rest_is_reported(project: Path, engine: FakeEngine) -> None:
    (project / "pkg" / "bad.py").write_bytes(b"\xff\xfe")
    (project / "pkg" / "folder.py").mkdir()
    result = run("pkg", "pkg/folder.py", "--output-format", "concise")
    assert result.exit_code == 2
    assert result.stdout.startswith("pkg/a.py:1:1: RB101")
    assert result.stderr == (
        "rebindlint: pkg/folder.py: is a folder, although it is named like a Python file\n"
        "rebindlint: pkg/bad.py: cannot be decoded: invalid or missing encoding declaration\n"
    )


def test_an_internal_error_is_one_line_and_verbose_shows_the_traceback(
    project: Path, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object, **named: object) -> None:
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr(pipeline, "discover", broken)
    result = run(".")
    assert result.exit_code == 2
    assert (
        result.stderr
        == "rebindlint: internal error: ZeroDivisionError: two lines (run with --verbose for the traceback)\n"
    )
    verbose = run(".", "--verbose")
    assert (verbose.exit_code, "Traceback" in verbose.stderr) == (2, True)


def test_an_interrupt_is_one_line_and_exit_code_130(
    project: Path, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object, **named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "discover", interrupted)
    result = run(".")
    assert (result.exit_code, result.stderr) == (130, "rebindlint: interrupted\n")


# ---- selection


def test_rules_are_selected_by_code_and_prefix(project: Path, engine: FakeEngine) -> None:
    assert run("--select", "RB2").exit_code == 0
    assert run("--select", "RB2,RB1").exit_code == 1
    assert run("--select", "RB2", "--select", "RB101").exit_code == 1
    assert run("--select", "rb1", "--ignore", "RB101").exit_code == 0
    assert run("--select", "RB2", "--extend-select", "RB101").exit_code == 1
    (project / "pyproject.toml").write_text("[tool.rebindlint]\nignore = ['RB101']\n")
    assert run(".").exit_code == 0
    assert run("--extend-select", "RB1").exit_code == 0
    assert run("--select", "RB101").exit_code == 1


# ---- formats and files


def test_json_is_pure(project: Path, engine: FakeEngine) -> None:
    result = run("--output-format", "json", "pkg", "nowhere", "--verbose")
    assert [record["code"] for record in json.loads(result.stdout)] == ["RB101", "RB101", "RB003"]
    assert result.exit_code == 2
    (project / "pkg" / "a.py").write_text("")
    assert json.loads(run("--output-format", "json").stdout) == []
    (project / "pkg" / "a.py").write_text("x_HAZARD_SAFE\n")
    assert json.loads(run("--output-format", "json", "--fix").stdout) == []


def test_the_format_can_be_configured(project: Path, engine: FakeEngine) -> None:
    (project / "pyproject.toml").write_text("[tool.rebindlint]\noutput-format = 'concise'\n")
    assert run("-q").stdout.splitlines()[0] == "pkg/a.py:1:1: RB101 `x` gets a new tensor"


def test_statistics_replace_the_findings(project: Path, engine: FakeEngine) -> None:
    result = run("--statistics")
    assert (result.exit_code, result.stdout) == (
        1,
        "2  RB101  [-]  attribute-rebind\n1  RB003  [ ]  budget-exhausted\n",
    )


def test_the_report_can_go_to_a_file(project: Path, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = run("-o", "report.txt", "--output-format", "concise")
    assert (result.exit_code, result.stdout) == (1, "")
    assert (project / "report.txt").read_text().startswith("pkg/a.py:1:1: RB101 ")
    assert run("-o", os.devnull).exit_code == 1


def test_colour_follows_the_environment(project: Path, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" not in run(".").stdout
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in run(".").stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in run(".").stdout


def test_verbose_says_what_was_done_on_standard_error(project: Path, engine: FakeEngine) -> None:
    assert "rebindlint: 2 hooks executed along 5 paths\nrebindlint: 2 files in " in run("-v").stderr
    assert "rebindlint: 2 hooks: result found in the cache\n" in run("-v").stderr


# ---- fixing


def test_fix_writes_and_reports_what_is_left(project: Path, engine: FakeEngine) -> None:
    result = run("--fix", "--output-format", "concise", "pkg")
    assert (project / "pkg" / "a.py").read_text() == "HAZARD\nx__SAFE\nNOTE\n"
    assert result.stdout.splitlines()[0] == "pkg/a.py:1:1: RB101 `x` gets a new tensor"
    assert (result.exit_code, result.stderr) == (1, "rebindlint: fixed 1 hazard in 1 file\n")


def test_fix_can_be_configured_and_forbidden(project: Path, engine: FakeEngine) -> None:
    (project / "pyproject.toml").write_text("[tool.rebindlint]\nfix = true\n")
    run("--no-fix")
    assert "x_HAZARD_SAFE" in (project / "pkg" / "a.py").read_text()
    run(".")
    assert "x_HAZARD_SAFE" not in (project / "pkg" / "a.py").read_text()


def test_diff_shows_and_writes_nothing(project: Path, engine: FakeEngine) -> None:
    (project / "pkg" / "a.py").write_bytes(b"a = 1\r\nx_HAZARD_SAFE")
    result = run("--diff")
    assert result.stdout_bytes == (
        b"--- a/pkg/a.py\n+++ b/pkg/a.py\n@@ -1,2 +1,2 @@\n a = 1\r\n-x_HAZARD_SAFE\n\\ No newline at end of file\n"
        b"+x__SAFE\n\\ No newline at end of file\n"
    )
    assert (project / "pkg" / "a.py").read_bytes() == b"a = 1\r\nx_HAZARD_SAFE"
    assert (result.exit_code, result.stderr) == (1, "rebindlint: would fix 1 hazard in 1 file\n")


def test_fix_only_reports_nothing(project: Path, engine: FakeEngine) -> None:
    result = run("--fix-only")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "x__SAFE" in (project / "pkg" / "a.py").read_text()


def test_standard_input_gives_findings(project: Path, engine: FakeEngine) -> None:
    result = run("-", "--output-format", "concise", "-q", stdin="HAZARD\n")
    assert (result.exit_code, result.stdout) == (1, "-:1:1: RB101 `x` gets a new tensor\n")
    named = run("-", "--stdin-filename", "pkg/a.py", "--output-format", "concise", "-q", stdin="HAZARD\n")
    assert named.stdout == "pkg/a.py:1:1: RB101 `x` gets a new tensor\n"


def test_fixed_standard_input_goes_to_standard_output_and_findings_to_standard_error(
    project: Path, engine: FakeEngine
) -> None:
    text = "\ufeff# é\r\nx_HAZARD_SAFE\r\nHAZARD\r\n".encode()
    result = run("-", "--fix", "--stdin-filename", "pkg/a.py", "--output-format", "concise", "-q", stdin=text)
    assert result.stdout_bytes == "\ufeff# é\r\nx__SAFE\r\nHAZARD\r\n".encode()
    assert (result.exit_code, result.stderr) == (1, "pkg/a.py:3:1: RB101 `x` gets a new tensor\n")
    unchanged = run("-", "--fix", "-q", stdin="def f(:\n")
    assert (unchanged.stdout, "RB000" in unchanged.stderr) == ("def f(:\n", True)
    assert (project / "pkg" / "a.py").read_text() == "HAZARD\nx_HAZARD_SAFE\nNOTE\n"


def test_standard_input_that_is_no_text_is_refused(project: Path, engine: FakeEngine) -> None:
    result = run("-", stdin=b"x = '\xff'\n")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("rebindlint: standard input cannot be decoded: ")


# ---- help, rules, pages


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_tells_options_and_commands(option: str) -> None:
    result = run(option)
    assert result.exit_code == 0
    for word in ("--fix", "--reload", "--output-format", "explain", "rules", "verify", "[PATHS]"):
        assert word in result.stdout
    for command in ("check", "explain", "rules", "verify"):
        assert run(command, option).exit_code == 0


def test_version(project: Path) -> None:
    assert run("-V").stdout == run("--version").stdout
    result = run("--version")
    assert (result.exit_code, result.stdout.split()[0]) == (0, "rebindlint")


def test_rules_are_listed_as_they_are_registered() -> None:
    listed = [(entry.code, entry.name, entry.page, entry.fix) for entry in catalogue()]
    fixed = registry.fixers().keys() | {"RB001"}
    assert listed == [(rule.code, rule.name, registry.page(rule.code), rule.code in fixed) for rule in registry.rules()]
    lines = run("rules").stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [[rule.code, rule.name] for rule in registry.rules()]
    records = json.loads(run("rules", "--output-format", "json").stdout)
    assert [record["code"] for record in records] == [rule.code for rule in registry.rules()]
    assert all(record["summary"].endswith(".") for record in records)
    assert {record["code"]: record["fix"] for record in records}["RB101"] is True


@pytest.mark.parametrize("code", ["RB101", "rb101", "attribute-rebind"])
def test_explain_prints_the_page(project: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("explain", code).stdout == f"# attribute-rebind (RB101)\n\n{registry.page('RB101').strip()}\n"
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in run("explain", code).stdout


def test_explain_suggests_the_nearest_rule(project: Path, engine: FakeEngine) -> None:
    assert (
        run("explain", "atribute-rebind").stderr
        == "rebindlint: unknown rule `atribute-rebind` (did you mean `attribute-rebind`?)\n"
    )


def test_every_option_has_a_help_text() -> None:
    for name, command in cli.commands.items():
        assert command.help, name
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help or parameter.name == "output_format", f"{name} {parameter.name}"


# ---- the real thing


def test_a_real_hazard_is_found_by_a_real_process(tmp_path: Path) -> None:
    (tmp_path / "layer.py").write_text(HOOK)
    result = real("layer.py", "--output-format", "json", cwd=tmp_path)
    assert result.returncode == 1, result.stderr
    (record,) = json.loads(result.stdout)
    assert (record["code"], record["location"]["row"], record["attribute"]) == ("RB101", 7, "self.transposed")
    assert real("layer.py", cwd=tmp_path, env={"FORCE_COLOR": "1"}).stdout.startswith(b"\x1b[")


def test_a_helper_s_hazard_is_reported_where_it_lies_and_for_its_callers_when_asked(project: Path) -> None:
    (project / "pkg" / "a.py").write_text("def pack(layer):\n    layer.transposed = layer.weight.t().contiguous()\n")
    (project / "pkg" / "layer.py").write_text(
        HOOK.replace("import torch\n", "from pkg.a import pack\n").replace(
            "self.transposed = self.weight.t().contiguous()", "pack(self)"
        )
    )
    (inside,) = json.loads(run("pkg/a.py", "--output-format", "json").stdout)
    assert (inside["filename"], inside["location"]["row"]) == ("pkg/a.py", 2)
    assert [(frame["filename"], frame["row"]) for frame in inside["trace"]] == [("pkg/layer.py", 7), ("pkg/a.py", 2)]
    assert run("pkg/layer.py").exit_code == 0
    (affected,) = json.loads(run("pkg/layer.py", "--affected", "--output-format", "json").stdout)
    assert affected["fix"]["applicability"] == "display"  # the file that it would change was not given
    inside["fix"]["applicability"] = "display"
    assert affected == inside


def test_a_real_fix_is_written_once(project: Path) -> None:
    (project / "pkg" / "a.py").write_bytes(HOOK.replace("\n", "\r\n").encode())
    first = run("--fix", "pkg")
    fixed = (project / "pkg" / "a.py").read_bytes()
    assert (first.exit_code, first.stdout) == (0, "No hazards found in 2 files.\n"), first.stderr
    assert b".copy_(" in fixed
    assert fixed.count(b"\n") == fixed.count(b"\r\n")
    assert fixed.startswith(HOOK.partition("        self.")[0].replace("\n", "\r\n").encode())
    assert run("--fix", "--exit-non-zero-on-fix", "pkg").exit_code == 0
    assert (project / "pkg" / "a.py").read_bytes() == fixed


def test_a_closed_pipe_gives_no_traceback(tmp_path: Path) -> None:
    body = "".join(f"    def forward{n}(self, x):\n        return x @ self.transposed\n\n" for n in range(3))
    for number in range(300):
        (tmp_path / f"layer{number}.py").write_text("def f(:\n" if number else HOOK + body)
    command = f"{sys.executable} -m rebindlint --no-cache . | head -1"
    result = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, check=False)
    assert (result.stdout.count(b"\n"), result.stderr) == (1, b"")


@pytest.mark.parametrize("arguments", [["layer.py"], ["rules"], ["explain", "RB101"], ["hooks", "layer.py"], ["-h"]])
def test_a_full_disk_is_one_line_and_exit_code_2(tmp_path: Path, arguments: list[str]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    (tmp_path / "layer.py").write_text(HOOK)
    command = [sys.executable, "-m", "rebindlint", *arguments]
    with open("/dev/full", "wb") as full:
        result = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, check=False)
    assert result.returncode == 2
    assert result.stderr == b"rebindlint: the output cannot be written: No space left on device\n"


def test_closed_streams_do_not_fail(tmp_path: Path) -> None:
    (tmp_path / "layer.py").write_text(HOOK)

    def closing(stream: int, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "rebindlint", *arguments]
        script = f"import os; os.close({stream}); os.execv({sys.executable!r}, {command!r})"
        return subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, check=False)

    for stream in (1, 2):
        result = closing(stream, "layer.py")
        assert (result.returncode, result.stderr) == (1, b"")
    result = closing(0, "-")
    assert (result.returncode, result.stderr) == (2, b"rebindlint: standard input is closed\n")


def test_an_unreadable_path_does_not_stop_the_run(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is for whoever reads the file to find out; the command line does not ask (root may read everything)."""
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode, **how: path != "pkg/a.py" and allowed(path, mode, **how))
    assert run("pkg/a.py").stdout == "No hazards found in 1 file.\n"
    assert run("hooks", "pkg/a.py").stdout == "No hooks.\n"


def test_output_that_cannot_show_a_character_does_not_fail(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("x = '\N{SNOWMAN}' (\n", encoding="utf-8")
    result = real("m.py", cwd=tmp_path, env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (result.returncode, result.stderr) == (1, b"")
    assert b"\\u2603" in result.stdout


def test_names_that_are_no_text_do_not_fail(tmp_path: Path) -> None:
    name = os.fsdecode(b"odd\xff[x].py")
    (tmp_path / name).write_text("def f(:\n")
    result = real("--output-format", "concise", ".", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (1, b"")
    assert b"[x].py:1:7: RB000" in result.stdout


@pytest.mark.parametrize("arguments", [["-h"], ["rules"], ["explain", "RB101"], ["--version"], ["pkg"]])
def test_what_needs_no_analysis_does_not_import_libcst(project: Path, arguments: list[str]) -> None:
    """The last one finds its result in the cache."""
    (project / "pkg" / "a.py").write_text(HOOK)
    run("pkg")
    code = f"import sys, atexit; atexit.register(lambda: print('libcst' in sys.modules)); from rebindlint.cli import main; main({arguments})"
    result = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, check=False)
    assert (result.stdout.splitlines()[-1], result.stderr) == (b"False", b"")
