"""Which rules are on for which file, and which fixes count."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebindlint.config import Config
from rebindlint.model import Applicability, Diagnostic, Edit, Fix, Place, Position, RebindlintError, Severity
from rebindlint.selection import check_selectors, is_selected, select

KNOWN = ("RB000", "RB003", "RB101", "RB102", "RB203")
PLACE = Place("pkg/tests/a.py", Position(1, 1), Position(1, 2))


def diagnostic(code: str = "RB101", applicability: Applicability = Applicability.SAFE) -> Diagnostic:
    fix = Fix(applicability, "fix", (Edit(PLACE, ""),))
    return Diagnostic(code, "name", "message", Severity.ERROR, PLACE, fix=fix)


@pytest.mark.parametrize(
    ("config", "on"),
    [
        (Config(), "RB101 RB102 RB203"),
        (Config(select=("RB1",)), "RB101 RB102"),
        (Config(select=("RB1",), extend_select=("RB203",)), "RB101 RB102 RB203"),
        (Config(ignore=("RB1",)), "RB203"),
        (Config(ignore=("RB1",), extend_ignore=("RB203",)), ""),
        (Config(select=("RB101",), ignore=("RB1",)), "RB101"),
        (Config(select=("RB1",), ignore=("RB101",)), "RB102"),
        (Config(select=("RB101",), ignore=("RB101",)), ""),
        (Config(ignore=("ALL",)), ""),
        (Config(select=("RB2",), ignore=("ALL",)), "RB203"),
    ],
)
def test_the_longest_selector_decides(config: Config, on: str) -> None:
    assert [code for code in ("RB101", "RB102", "RB203") if is_selected(code, config)] == on.split()


def test_what_says_that_something_was_not_judged_stays_unless_it_is_ignored_by_its_code() -> None:
    assert is_selected("RB000", Config(select=("RB101",)))
    assert is_selected("RB003", Config(select=("RB101",), ignore=("RB0",)))
    assert not is_selected("RB003", Config(ignore=("RB003",)))


@pytest.mark.parametrize(
    ("pattern", "ignored"),
    [
        ("a.py", True),
        ("*.py", True),
        ("pkg/tests/*", True),
        ("./pkg/tests/*", True),
        ("tests/*", False),
        ("**/tests/*", True),
        ("!pkg/tests/*", False),
        ("!src/*", True),
    ],
)
def test_rules_can_be_ignored_by_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, ignored: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    config = Config(root=tmp_path, per_file_ignores=((pattern, ("RB1",)),))
    assert (select([diagnostic()], config) == []) is ignored
    assert select([diagnostic("RB203")], config) != []


def test_file_patterns_count_from_the_configuration_s_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    config = Config(root=tmp_path, per_file_ignores=(("sub/pkg/*", ("ALL",)),))
    assert select([diagnostic()], config) == []


@pytest.mark.parametrize(
    ("config", "before", "after"),
    [
        (Config(), Applicability.SAFE, Applicability.SAFE),
        (Config(unfixable=("RB1",)), Applicability.SAFE, None),
        (Config(fixable=("RB2",)), Applicability.SAFE, None),
        (Config(fixable=("RB101",), unfixable=("RB1",)), Applicability.SAFE, Applicability.SAFE),
        (Config(extend_safe_fixes=("RB1",)), Applicability.UNSAFE, Applicability.SAFE),
        (Config(extend_unsafe_fixes=("RB1",)), Applicability.SAFE, Applicability.UNSAFE),
        (Config(extend_unsafe_fixes=("RB1",), extend_safe_fixes=("RB101",)), Applicability.UNSAFE, Applicability.SAFE),
        (Config(extend_safe_fixes=("RB1",)), Applicability.DISPLAY, Applicability.DISPLAY),
    ],
)
def test_fixes_can_be_forbidden_and_reclassified(
    config: Config, before: Applicability, after: Applicability | None
) -> None:
    (kept,) = select([diagnostic(applicability=before)], config)
    assert (kept.fix.applicability if kept.fix else None) == after


def test_unknown_selectors_are_named_with_their_key() -> None:
    check_selectors(Config(select=("RB1", "ALL")), KNOWN)
    with pytest.raises(RebindlintError, match=r"^unknown rule code `RB9` in extend-select$"):
        check_selectors(Config(extend_select=("RB9",)), KNOWN)
    with pytest.raises(
        RebindlintError, match=r"^unknown rule code `RB204` in per-file-ignores\.'a\.py' \(did you mean `RB203`\?\)$"
    ):
        check_selectors(Config(per_file_ignores=(("a.py", ("RB204",)),)), KNOWN)
