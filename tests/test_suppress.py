"""Suppressions: what a comment hides, what is said about comments, and what their fixes leave."""

from __future__ import annotations

import textwrap

import pytest

from rebindlint.model import Diagnostic, Place, Position, RebindlintError, Severity
from rebindlint.suppress import apply_suppressions, find_suppressions
from rebindlint.texts import edited, split_lines


def finding(row: int, end_row: int | None = None, code: str = "RB101", filename: str = "a.py") -> Diagnostic:
    place = Place(filename, Position(row, 5), Position(end_row or row, 9))
    return Diagnostic(code, "some-rule", "message", Severity.ERROR, place)


def left(text: str, *diagnostics: Diagnostic, off: frozenset[str] = frozenset()) -> list[Diagnostic]:
    return apply_suppressions(
        diagnostics, {"a.py": text}.__getitem__, files=["a.py"], is_on=lambda code: code not in off
    )


def codes(text: str, *diagnostics: Diagnostic, off: frozenset[str] = frozenset()) -> list[str]:
    return [diagnostic.code for diagnostic in left(text, *diagnostics, off=off)]


def fixed(text: str, *diagnostics: Diagnostic) -> str:
    edits = [edit for diagnostic in left(text, *diagnostics) if diagnostic.fix for edit in diagnostic.fix.edits]
    return edited(text, edits)


@pytest.mark.parametrize(
    "text",
    [
        "x = 1  # rebindlint: ignore[RB101] because\n",
        "x = 1  #rebindlint:ignore[RB101]\n",
        "x = 1  # Rebindlint: Ignore[rb101]\n",
        "x = 1  # rebindlint: ignore[RB1]\n",
        "x = 1  # type: ignore  # rebindlint: ignore[RB101]\n",
        "x = 1  # rebindlint: ignore[RB101]  # type: ignore\n",
        "x = 1  # noqa: RB101\n",
        "x = 1  # NOQA:E501,RB101\n",
        "x = 1  # noqa: E501 RB101 because\n",
        "x = 1  # noqa: RB1\n",
    ],
)
def test_a_comment_on_the_line_hides_a_finding(text: str) -> None:
    assert codes(text, finding(1)) == []


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n",
        "x = 1  # noqa\n",
        "x = 1  # noqa: E501\n",
        "x = 1  # rebindlint ignore[RB101]\n",
        "x = '# rebindlint: ignore[RB101]'\n",
        "x = '''\n# rebindlint: ignore[RB101]\n'''\n",
        "x = 1  # rebindlint: ignored[RB101]\n",
        "x = 1\n# rebindlint: ignorance\n",
    ],
)
def test_other_comments_and_strings_hide_nothing(text: str) -> None:
    assert codes(text, finding(1)) == ["RB101"]


def test_a_comment_above_hides_the_next_statement() -> None:
    text = "# rebindlint: ignore[RB101] a long\n# reason, continued\nx = 1\ny = 2\n"
    assert codes(text, finding(3)) == []
    assert codes(text, finding(4)) == ["RB101", "RB001"]


def test_a_comment_at_the_end_of_a_line_says_nothing_about_the_next_line() -> None:
    assert codes("x = 1  # rebindlint: ignore[RB101]\ny = 2\n", finding(1), finding(2)) == ["RB101"]


def test_a_blank_line_separates_a_comment_from_the_statement() -> None:
    assert codes("# rebindlint: ignore[RB101]\n\nx = 1\n", finding(3)) == ["RB101", "RB001"]


def test_any_line_of_the_statement_may_carry_the_comment() -> None:
    text = "x = f(\n    1,  # rebindlint: ignore[RB101]\n    2,\n)\n"
    assert codes(text, finding(1, 4)) == []
    assert codes("x = f(\n    1,\n)  # noqa: RB101\n", finding(1, 3)) == []
    assert codes(text, finding(3, 4)) == ["RB101", "RB001"]


def test_only_the_named_codes_are_hidden() -> None:
    assert codes("x = 1  # rebindlint: ignore[RB102]\n", finding(1)) == ["RB101", "RB001"]


def test_a_whole_file_can_be_ignored() -> None:
    text = "# rebindlint: ignore-file[RB101] generated\nx = 1\ny = 2\n"
    assert codes(text, finding(2), finding(3), finding(3, code="RB102")) == ["RB102"]
    assert codes("x = 1\n# rebindlint: ignore-file[RB101]\n") == ["RB001"]


def test_a_bare_comment_hides_all_and_is_reported() -> None:
    text = "x = 1  # rebindlint: ignore reason\n"
    (bare,) = left(text, finding(1), finding(1, code="RB203"))
    assert (bare.code, bare.severity) == ("RB002", Severity.WARNING)
    assert bare.place == Place("a.py", Position(1, 8), Position(1, 35))
    assert "hides RB101, RB203," in bare.message
    assert (bare.fix, "ignore[RB101, RB203]" in bare.help) == (None, True)
    assert codes("# rebindlint: ignore-file\nx = 1\n", finding(2)) == ["RB002"]
    assert codes("x = 1  # rebindlint: ignore[]\n", finding(1)) == ["RB002"]


def test_an_unused_comment_is_reported_once_and_removed() -> None:
    text = "x = 1  # rebindlint: ignore[RB101] no more\n"
    (unused,) = left(text)
    assert (unused.code, unused.severity, unused.place.start) == ("RB001", Severity.WARNING, Position(1, 8))
    assert fixed(text) == "x = 1\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if a:\n    # rebindlint: ignore[RB101]\n    x = 1\n", "if a:\n    x = 1\n"),
        ("x = 1\n# rebindlint: ignore[RB101]", "x = 1\n"),
        ("x = 1  # rebindlint: ignore[RB101] see #12\r\ny\r\n", "x = 1\r\ny\r\n"),
        ("x = 1  # rebindlint: ignore[RB101]  # noqa: E501\n", "x = 1  # noqa: E501\n"),
        ("x = 1  # type: ignore  # rebindlint: ignore[RB101]\n", "x = 1  # type: ignore\n"),
        ("x = '漢'\t# rebindlint: ignore[RB101]\n", "x = '漢'\n"),
        ("x = 1  # rebindlint: ignore\n", "x = 1\n"),
    ],
)
def test_the_fix_removes_the_comment_and_nothing_else(before: str, after: str) -> None:
    assert fixed(before) == after


def test_only_the_unused_codes_are_removed() -> None:
    text = "x = 1  # rebindlint: ignore[RB101, RB203] both\n"
    assert codes(text, finding(1)) == ["RB001"]
    assert fixed(text, finding(1)) == "x = 1  # rebindlint: ignore[RB101] both\n"


def test_a_rule_that_was_not_asked_leaves_no_unused_suppression() -> None:
    assert codes("x = 1  # rebindlint: ignore[RB101]\n", off=frozenset({"RB101"})) == []
    assert codes("x = 1  # rebindlint: ignore[RB101]\n", off=frozenset({"RB001"})) == []
    assert codes("x = 1  # rebindlint: ignore\n", finding(1), off=frozenset({"RB002"})) == []


def test_a_bare_suppression_is_judged_when_every_rule_was_asked() -> None:
    text = "x = 1  # rebindlint: ignore\n"
    assert codes(text) == ["RB001"]
    assert codes(text, off=frozenset({"RB002", "RB004"})) == ["RB001"]
    assert codes(text, off=frozenset({"RB301"})) == []


def test_a_code_that_names_no_rule_is_called_that() -> None:
    (unknown,) = left("x = 1  # rebindlint: ignore[RB999]\n")
    assert unknown.message == "this suppression of RB999 suppresses nothing; there is no rule RB999"
    (partly,) = left("x = 1  # rebindlint: ignore[RB101, RB999]\n", finding(1))
    assert partly.message == "this suppression names RB999, which it does not suppress; there is no rule RB999"
    assert fixed("x = 1  # rebindlint: ignore[RB101, RB999]\n", finding(1)) == "x = 1  # rebindlint: ignore[RB101]\n"


def test_a_suppression_by_name_is_told_the_code_and_kept() -> None:
    text = "x = 1  # rebindlint: ignore[attribute-rebind]\n"
    found = left(text, finding(1))
    assert [diagnostic.code for diagnostic in found] == ["RB101", "RB001"]
    assert found[1].message.endswith(
        "names a rule by `attribute-rebind` and suppresses nothing: it needs the code, RB101"
    )
    assert found[1].help == "write `# rebindlint: ignore[RB101] reason`"
    assert fixed(text, finding(1)) == text


def test_a_suppression_can_say_that_it_may_be_unused() -> None:
    assert codes("x = 1  # rebindlint: ignore[RB101, RB001] on some platforms\n") == []


def test_a_noqa_is_never_called_unused() -> None:
    assert codes("x = 1  # noqa: RB101\n") == []


def test_parse_errors_cannot_be_suppressed() -> None:
    assert codes("# rebindlint: ignore-file[RB000]\nx = (\n", finding(2, code="RB000")) == ["RB000", "RB001"]


def test_comments_before_the_break_of_a_broken_file_still_count() -> None:
    assert codes("x = 1  # rebindlint: ignore[RB101]\ny = (\n", finding(1)) == []


def test_a_file_that_cannot_be_read_keeps_its_findings() -> None:
    def read(filename: str) -> str:
        raise RebindlintError(f"{filename}: gone")

    assert apply_suppressions([finding(1)], read, files=["a.py"]) == [finding(1)]


def test_findings_in_files_that_are_no_targets_are_suppressed_without_hygiene() -> None:
    text = "x = 1  # rebindlint: ignore[RB101]\ny = 1  # rebindlint: ignore[RB101]\n"
    assert apply_suppressions([finding(1)], {"a.py": text}.__getitem__) == []


def test_odd_line_ends_do_not_shift_rows() -> None:
    text = "a = '\x0c'\rb = 1\n\x0cx = 1  # rebindlint: ignore[RB101]\n"
    assert split_lines(text) == ["a = '\x0c'", "b = 1", "\x0cx = 1  # rebindlint: ignore[RB101]", ""]
    assert codes(text, finding(3)) == []


def test_a_comment_in_the_middle_of_a_call_is_found_with_its_place() -> None:
    text = textwrap.dedent("""\
        f(
            # rebindlint: ignore[RB101]
            x,
        )
        """)
    (suppression,) = find_suppressions(text, "a.py")
    assert suppression.rows == frozenset({2, 3})
    assert suppression.place == Place("a.py", Position(2, 5), Position(2, 32))
