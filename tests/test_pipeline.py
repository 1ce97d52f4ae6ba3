"""The pipeline around the engine: targets, selection, suppression, fixing until stable, failures, the cache."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_engine import FakeEngine

from rebindlint.config import Config, load_config
from rebindlint.model import Severity
from rebindlint.pipeline import Outcome, Request, run


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    return FakeEngine().install(monkeypatch)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.rebindlint]\n")
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    return tmp_path


def lint(
    *paths: str,
    cache: bool = False,
    fix: bool = False,
    unsafe: bool = False,
    write: bool = True,
    affected: bool = False,
) -> Outcome:
    config = load_config(paths)
    return run(Request(paths, config, fix=fix, unsafe=unsafe, write=write, affected=affected, cache=cache))


def found(outcome: Outcome) -> list[str]:
    return [f"{d.place.filename}:{d.place.start.row} {d.code}" for d in outcome.diagnostics]


def write(project: Path, **texts: str) -> None:
    for name, text in texts.items():
        (project / "pkg" / f"{name}.py").write_text(text)


def test_findings_come_in_the_order_of_the_source(project: Path, engine: FakeEngine) -> None:
    write(project, b="HAZARD\n\nHAZARD\n", a="x\nHAZARD\n")
    outcome = lint("pkg")
    assert found(outcome) == ["pkg/a.py:2 RB101", "pkg/b.py:1 RB101", "pkg/b.py:3 RB101"]
    assert (outcome.files, outcome.failures, outcome.changed) == (3, (), ())


def test_only_given_files_are_reported_and_affected_ones_when_asked(project: Path, engine: FakeEngine) -> None:
    write(project, helper="HAZARD\n", hook="HAZARD  # via pkg/helper.py\n", other="HAZARD  # via pkg/hook.py\n")
    assert found(lint("pkg/helper.py")) == ["pkg/helper.py:1 RB101"]
    assert found(lint("pkg/helper.py", affected=True)) == ["pkg/helper.py:1 RB101", "pkg/hook.py:1 RB101"]


def test_selection_and_suppression_come_after_the_engine(project: Path, engine: FakeEngine) -> None:
    write(project, a="HAZARD  # rebindlint: ignore[RB101]\nHAZARD\ny  # rebindlint: ignore[RB203]\nNOTE\n")
    assert found(lint("pkg")) == ["pkg/a.py:2 RB101", "pkg/a.py:3 RB001", "pkg/a.py:4 RB003"]
    (project / "pyproject.toml").write_text("[tool.rebindlint]\nselect = ['RB101']\n")
    assert found(lint("pkg")) == ["pkg/a.py:2 RB101", "pkg/a.py:4 RB003"]
    (project / "pyproject.toml").write_text("[tool.rebindlint]\nper-file-ignores = {'pkg/a.py' = ['RB1', 'RB0']}\n")
    assert found(lint("pkg")) == []


def test_a_syntax_error_is_a_finding_of_targets_only(project: Path, engine: FakeEngine) -> None:
    write(project, broken="x = 1\ndef f(:\n", fine="HAZARD\n")
    outcome = lint("pkg")
    assert found(outcome) == ["pkg/broken.py:2 RB000", "pkg/fine.py:1 RB101"]
    assert outcome.diagnostics[0].severity is Severity.ERROR
    assert found(lint("pkg/fine.py")) == ["pkg/fine.py:1 RB101"]


def test_what_the_index_refuses_is_reported_too(project: Path, engine: FakeEngine) -> None:
    write(project, deep="x = 1\n", fine="y = 1\n")
    engine.failures = {"pkg/deep.py": (1, 1, "nested or chained too deeply to be analysed")}
    (refused,) = lint("pkg").diagnostics
    assert (refused.code, refused.place.filename) == ("RB000", "pkg/deep.py")
    assert "chained too deeply" in refused.message


def test_unusable_paths_and_files_are_failures_and_the_run_goes_on(project: Path, engine: FakeEngine) -> None:
    write(project, a="HAZARD\n")
    (project / "pkg" / "latin.py").write_bytes(b"x = '\xe9'\n")
    outcome = lint("pkg", "missing.py")
    assert found(outcome) == ["pkg/a.py:1 RB101"]
    assert [line.partition(":")[0] for line in outcome.failures] == ["missing.py", "pkg/latin.py"]
    assert lint("pkg/a.py").failures == ()


def test_fixing_goes_on_until_nothing_changes_and_writes_once(project: Path, engine: FakeEngine) -> None:
    write(project, a="x_HAZARDHAZARD_SAFE\nx_HAZARD_UNSAFE\nHAZARD\n")
    outcome = lint("pkg", fix=True)
    assert (project / "pkg" / "a.py").read_text() == "x__SAFE\nx_HAZARD_UNSAFE\nHAZARD\n"
    assert found(outcome) == ["pkg/a.py:2 RB101", "pkg/a.py:3 RB101"]
    assert (len(outcome.fixed), [change.source.shown for change in outcome.changed]) == (2, ["pkg/a.py"])
    again = lint("pkg", fix=True)
    assert (again.fixed, again.changed) == ((), ())


def test_unsafe_fixes_are_applied_when_asked(project: Path, engine: FakeEngine) -> None:
    write(project, a="x_HAZARD_UNSAFE\nx_HAZARD_SAFE\n")
    outcome = lint("pkg", fix=True, unsafe=True)
    assert (found(outcome), (project / "pkg" / "a.py").read_text()) == ([], "x__UNSAFE\nx__SAFE\n")


def test_a_fix_that_does_not_help_is_put_back_and_the_others_are_kept(project: Path, engine: FakeEngine) -> None:
    write(project, a="x_HAZARD_SAFE_USELESS\n", b="x_HAZARD_SAFE\n")
    outcome = lint("pkg", fix=True)
    assert [(project / "pkg" / f"{name}.py").read_text() for name in "ab"] == ["x_HAZARD_SAFE_USELESS\n", "x__SAFE\n"]
    assert (found(outcome), len(outcome.fixed), len(outcome.refused)) == (["pkg/a.py:1 RB101"], 1, 1)
    (left,) = outcome.diagnostics
    assert (left.fix, "a fix was tried" in left.help) == (None, True)


def test_a_fix_that_does_not_help_is_tried_once(project: Path, engine: FakeEngine) -> None:
    write(project, a="x_HAZARD_SAFE_USELESS\n")
    lint("pkg", fix=True, cache=True)
    assert engine.runs == 2
    again = lint("pkg", fix=True, cache=True)
    assert (engine.runs, again.refused, found(again)) == (2, (), ["pkg/a.py:1 RB101"])


def test_without_writing_the_texts_are_only_returned(project: Path, engine: FakeEngine) -> None:
    write(project, a="x_HAZARD_SAFE\n")
    outcome = lint("pkg", fix=True, write=False)
    assert (project / "pkg" / "a.py").read_text() == "x_HAZARD_SAFE\n"
    assert [(change.before, change.after) for change in outcome.changed] == [("x_HAZARD_SAFE\n", "x__SAFE\n")]
    assert outcome.read("pkg/a.py") == "x__SAFE\n"


def test_only_targets_are_changed(project: Path, engine: FakeEngine) -> None:
    write(project, a="x_HAZARD_SAFE\n", b="x_HAZARD_SAFE  # via pkg/a.py\n")
    outcome = lint("pkg/a.py", fix=True, affected=True)
    assert (project / "pkg" / "b.py").read_text() == "x_HAZARD_SAFE  # via pkg/a.py\n"
    assert found(outcome) == ["pkg/b.py:1 RB101"]


def test_unused_suppressions_are_fixed_like_hazards(project: Path, engine: FakeEngine) -> None:
    write(project, a="x_HAZARD_SAFE  # rebindlint: ignore[RB101]\nx = 1  # rebindlint: ignore[RB101]\n")
    outcome = lint("pkg", fix=True)
    assert (project / "pkg" / "a.py").read_text() == "x_HAZARD_SAFE  # rebindlint: ignore[RB101]\nx = 1\n"
    assert [d.code for d in outcome.fixed] == ["RB001"]


def test_mode_encoding_and_line_ends_survive_a_fix(project: Path, engine: FakeEngine) -> None:
    file = project / "pkg" / "a.py"
    file.write_bytes("\ufeff# é\r\nx_HAZARD_SAFE\r\n".encode())
    file.chmod(0o755)
    lint("pkg", fix=True)
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == ("\ufeff# é\r\nx__SAFE\r\n".encode(), 0o755)
    file.write_bytes("# coding: latin-1\n# é x_HAZARD_SAFE\n".encode("latin-1"))
    lint("pkg", fix=True)
    assert file.read_bytes() == "# coding: latin-1\n# é x__SAFE\n".encode("latin-1")


def test_a_file_that_cannot_be_written_is_a_failure_and_keeps_its_text(
    project: Path, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, a="x_HAZARD_SAFE\n", b="x_HAZARD_SAFE\n")
    real = Path.resolve

    def resolve(self: Path, strict: bool = False) -> Path:
        if self.name == "a.py":
            raise PermissionError(13, "Permission denied")
        return real(self, strict)

    monkeypatch.setattr(Path, "resolve", resolve)
    outcome = lint("pkg", fix=True)
    assert outcome.failures == ("pkg/a.py: cannot be written: Permission denied",)
    assert [(project / "pkg" / f"{name}.py").read_text() for name in "ab"] == ["x_HAZARD_SAFE\n", "x__SAFE\n"]
    assert sorted(path.name for path in (project / "pkg").iterdir()) == ["__init__.py", "a.py", "b.py"]


def test_a_link_stays_a_link_when_its_file_is_fixed(project: Path, engine: FakeEngine) -> None:
    (project / "real.txt").write_text("x_HAZARD_SAFE\n")
    (project / "pkg" / "link.py").symlink_to(project / "real.txt")
    lint("pkg", fix=True)
    assert (project / "pkg" / "link.py").is_symlink()
    assert (project / "real.txt").read_text() == "x__SAFE\n"


def test_an_unchanged_project_is_not_executed_again(project: Path, engine: FakeEngine) -> None:
    write(project, a="HAZARD\n", broken="def f(:\n")
    first = lint("pkg", cache=True)
    assert (found(lint("pkg", cache=True)), engine.runs) == (found(first), 1)
    assert found(lint("pkg/broken.py", cache=True)) == ["pkg/broken.py:1 RB000"]
    write(project, a="x = 1\n")
    assert (found(lint("pkg", cache=True)), engine.runs) == (["pkg/broken.py:1 RB000"], 2)


def test_a_cached_result_serves_other_targets_and_selections(project: Path, engine: FakeEngine) -> None:
    write(project, a="HAZARD\n", b="HAZARD\ndef f(:\n")
    assert found(lint("pkg/a.py", cache=True)) == ["pkg/a.py:1 RB101"]
    assert found(lint("pkg/b.py", cache=True)) == ["pkg/b.py:1 RB101", "pkg/b.py:2 RB000"]
    (project / "pyproject.toml").write_text("[tool.rebindlint]\nignore = ['RB101']\n")
    assert found(lint("pkg/b.py", cache=True)) == ["pkg/b.py:2 RB000"]
    assert engine.runs == 1
    (project / "pyproject.toml").write_text("[tool.rebindlint]\nreload = 'direct'\n")
    lint("pkg/b.py", cache=True)
    assert engine.runs == 2


def test_the_run_after_a_fix_finds_its_result(project: Path, engine: FakeEngine) -> None:
    write(project, a="x_HAZARD_SAFE\nHAZARD\n")
    lint("pkg", cache=True, fix=True)
    runs = engine.runs
    assert (found(lint("pkg", cache=True)), engine.runs) == (["pkg/a.py:2 RB101"], runs)


def test_without_cache_nothing_is_kept(project: Path, engine: FakeEngine) -> None:
    write(project, a="HAZARD\n")
    lint("pkg")
    lint("pkg")
    assert (engine.runs, (project / ".rebindlint_cache").exists()) == (2, False)


def test_standard_input_is_linted_in_place_of_its_file(project: Path, engine: FakeEngine) -> None:
    write(project, a="x = 1\n")
    request = Request(
        ("-",), Config(root=project), cache=False, stdin_text="x_HAZARD_SAFE\n", stdin_filename="pkg/a.py"
    )
    assert found(run(request)) == ["pkg/a.py:1 RB101"]
    fixed = run(Request(("-",), Config(root=project), fix=True, write=False, cache=False, stdin_text="x_HAZARD_SAFE\n"))
    assert [(change.source.shown, change.after) for change in fixed.changed] == [("-", "x__SAFE\n")]
    assert (project / "pkg" / "a.py").read_text() == "x = 1\n"
