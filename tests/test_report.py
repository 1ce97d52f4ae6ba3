"""The formats: text with frames, concise, JSON, statistics."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.text import Text

from rebindlint.model import (
    Applicability,
    Diagnostic,
    Edit,
    Fix,
    Frame,
    Place,
    Position,
    Protocol,
    RebindlintError,
    Severity,
)
from rebindlint.report import Style, report, use_colour
from rebindlint.report.frame import diff_frame, source_frame
from rebindlint.report.statistics import Count, count

SOURCE = "import torch\n\n\nclass A:\n\tdef hook(self):\n\t\tself.x = torch.zeros(3)\n\t\tself.y = f(\n\t\t\tself.x,\n\t\t)\n"


def place(row: int, column: int, end_row: int, end_column: int, filename: str = "pkg/a.py") -> Place:
    return Place(filename, Position(row, column), Position(end_row, end_column))


def read(filename: str) -> str:
    if filename == "pkg/a.py":
        return SOURCE
    raise RebindlintError(f"{filename}: cannot be read")


FIX = Fix(Applicability.SAFE, "Copy in place", (Edit(place(6, 3, 6, 26), "self.x.copy_(torch.zeros(3))"),))
HAZARD = Diagnostic(
    "RB101",
    "attribute-rebind",
    "`self.x[bold]` gets a new tensor",
    Severity.ERROR,
    place(6, 3, 6, 26),
    "self.x",
    "A.hook",
    (Protocol.DIRECT, Protocol.LAYERWISE),
    (Frame("pkg/b.py", 3, "B.hook"), Frame("pkg/a.py", 6, "A.hook")),
    FIX,
)
PLAIN = Diagnostic("RB204", "one-shot-guard", "skipped", Severity.NOTE, place(1, 1, 1, 7), help="refresh it")


def text_of(*diagnostics: Diagnostic, unsafe: bool = False, quiet: bool = False) -> str:
    return report(diagnostics, read, Style("text", unsafe=unsafe, quiet=quiet), files=2)


def plain(lines: list[Text]) -> list[str]:
    return [line.plain for line in lines]


def test_a_block_has_message_place_frame_chain_and_diff() -> None:
    assert text_of(HAZARD, quiet=True) == (
        "RB101 [*] `self.x[bold]` gets a new tensor\n"
        " --> pkg/a.py:6:3\n"
        "  |\n"
        "4 | class A:\n"
        "5 |     def hook(self):\n"
        "6 |         self.x = torch.zeros(3)\n"
        "  |         ^^^^^^^^^^^^^^^^^^^^^^^\n"
        "7 |         self.y = f(\n"
        "8 |             self.x,\n"
        "  |\n"
        "note: severity error, holds under direct and layerwise reload\n"
        "note: in hook B.hook (pkg/b.py:3)\n"
        "note: called A.hook (pkg/a.py:6)\n"
        "help: Copy in place\n"
        "   |\n"
        " 5 |     def hook(self):\n"
        " 6 -         self.x = torch.zeros(3)\n"
        "   +         self.x.copy_(torch.zeros(3))\n"
        " 7 |         self.y = f(\n"
        "   |\n"
        "\n"
    )


def test_a_statement_of_several_lines_has_a_bar() -> None:
    assert plain(source_frame(SOURCE, place(7, 3, 9, 4), "red")) == [
        "  |",
        "5 |       def hook(self):",
        "6 |           self.x = torch.zeros(3)",
        "7 | /         self.y = f(",
        "8 | |             self.x,",
        "9 | |         )",
        "  | |_________^",
        "  |",
    ]


def test_the_middle_of_a_long_statement_is_left_out() -> None:
    text = "f(\n" + "    1,\n" * 30 + ")\n"
    frame = plain(source_frame(text, place(1, 1, 32, 2), "red"))
    assert frame[7] == " 7 | |     1,"
    assert frame[8:] == ["...", "32 | | )", "   | |_^", "   |"]


def test_the_frame_stands_where_the_source_has_wide_characters_and_controls() -> None:
    frame = plain(source_frame("x = '漢\x1b[31m'; y = 1\n", place(1, 15, 1, 20), "red"))
    assert frame[1] == "1 | x = '漢\N{REPLACEMENT CHARACTER}[31m'; y = 1"
    assert frame[2] == "  |" + " " * 16 + "^^^^^"


def test_a_place_outside_the_text_has_no_frame() -> None:
    assert source_frame("x\n", place(9, 1, 9, 2), "red") == []
    assert diff_frame("x\n", [Edit(place(9, 1, 9, 2), "y")]) == []


def test_an_empty_file_and_a_missing_last_newline_are_framed() -> None:
    assert plain(source_frame("", place(1, 1, 1, 2), "red")) == ["  |", "1 |", "  | ^", "  |"]
    assert plain(source_frame("x = 1", place(1, 5, 1, 6), "red"))[1:3] == ["1 | x = 1", "  |     ^"]


def test_distant_edits_are_shown_apart() -> None:
    text = "".join(f"line {n}\n" for n in range(1, 21))
    edits = [Edit(place(18, 1, 19, 1), ""), Edit(place(2, 1, 2, 1), "new\n")]
    assert plain(diff_frame(text, edits)) == [
        "   |",
        " 1 | line 1",
        "   + new",
        " 2 | line 2",
        " 3 | line 3",
        "...",
        "17 | line 17",
        "18 - line 18",
        "19 | line 19",
        "20 | line 20",
        "   |",
    ]


def test_an_unsafe_fix_is_said_to_be_unsafe_and_marked_only_when_asked_for() -> None:
    unsafe = replace(HAZARD, fix=replace(FIX, applicability=Applicability.UNSAFE))
    assert text_of(unsafe).startswith("RB101 `self.x[bold]`")
    assert "note: this fix is unsafe" in text_of(unsafe)
    assert text_of(unsafe, unsafe=True).startswith("RB101 [*] ")
    display = replace(HAZARD, fix=replace(FIX, applicability=Applicability.DISPLAY))
    assert text_of(display, unsafe=True).startswith("RB101 `self.x[bold]`")
    assert "note: this fix is a suggestion" in text_of(display)


def test_without_a_fix_the_advice_is_the_help() -> None:
    block = text_of(PLAIN, quiet=True)
    assert "note: severity note\nhelp: refresh it\n" in block


def test_a_file_that_is_gone_leaves_a_report_without_frame() -> None:
    gone = replace(PLAIN, place=place(1, 1, 1, 7, "gone.py"))
    assert text_of(gone, quiet=True) == "RB204 skipped\n --> gone.py:1:1\nnote: severity note\nhelp: refresh it\n\n"


def test_the_summary_counts_files_severities_and_fixes() -> None:
    warning = replace(HAZARD, severity=Severity.WARNING, fix=replace(FIX, applicability=Applicability.UNSAFE))
    summary = text_of(HAZARD, warning, PLAIN, replace(PLAIN, place=place(1, 1, 1, 7, "b.py"))).splitlines()[-1]
    assert summary == (
        "Found 2 hazards (1 error, 1 warning, 2 notes) in 2 files. 1 fixable with --fix (1 more with --unsafe-fixes)."
    )
    assert text_of(HAZARD, warning, unsafe=True).endswith("2 fixable with --fix --unsafe-fixes.\n")
    assert text_of(PLAIN).endswith("Found 0 hazards (0 errors, 0 warnings, 1 note) in 1 file.\n")


def test_nothing_found_is_said_with_the_number_of_files() -> None:
    assert report([], read, Style(), files=3231) == "No hazards found in 3,231 files.\n"
    assert report([], read, Style(quiet=True), files=3) == ""


def test_concise_is_one_line_a_finding() -> None:
    text = report([HAZARD, PLAIN], read, Style("concise", quiet=True), files=1)
    assert text == "pkg/a.py:6:3: RB101 [*] `self.x[bold]` gets a new tensor\npkg/a.py:1:1: RB204 skipped\n"


def test_messages_and_names_with_line_ends_stay_on_their_line() -> None:
    odd = replace(PLAIN, message="a\nb\x1b[2J", place=place(1, 1, 1, 2, "a\nb.py"))
    assert report([odd], read, Style("concise", quiet=True), files=1).count("\n") == 1
    assert "\x1b" not in text_of(odd)


def test_json_has_the_promised_keys() -> None:
    full, bare = json.loads(report([HAZARD, PLAIN], read, Style("json"), files=1))
    assert full == {
        "code": "RB101",
        "name": "attribute-rebind",
        "message": "`self.x[bold]` gets a new tensor",
        "severity": "error",
        "filename": "pkg/a.py",
        "location": {"row": 6, "column": 3},
        "end_location": {"row": 6, "column": 26},
        "attribute": "self.x",
        "hook": "A.hook",
        "reload": ["direct", "layerwise"],
        "trace": [
            {"filename": "pkg/b.py", "row": 3, "text": "B.hook"},
            {"filename": "pkg/a.py", "row": 6, "text": "A.hook"},
        ],
        "fix": {
            "applicability": "safe",
            "message": "Copy in place",
            "edits": [
                {
                    "content": "self.x.copy_(torch.zeros(3))",
                    "location": {"row": 6, "column": 3},
                    "end_location": {"row": 6, "column": 26},
                }
            ],
        },
        "url": None,
    }
    assert (bare["attribute"], bare["hook"], bare["reload"], bare["trace"], bare["fix"]) == (None, None, [], [], None)
    assert bare.keys() == full.keys()


def test_json_is_a_list_and_ascii_even_for_odd_names() -> None:
    assert json.loads(report([], read, Style("json"), files=1)) == []
    odd = replace(PLAIN, place=place(1, 1, 1, 2, "f\udcff\N{SNOWMAN}.py"))
    text = report([odd], read, Style("json"), files=1)
    assert text.isascii()
    assert json.loads(text)[0]["filename"] == "f\udcff\N{SNOWMAN}.py"


def test_statistics_count_codes_and_tell_what_is_fixable() -> None:
    unfixed = replace(HAZARD, fix=None)
    found = [PLAIN, HAZARD, unfixed]
    assert count(found) == [Count("RB101", "attribute-rebind", 2, 1), Count("RB204", "one-shot-guard", 1, 0)]
    text = report(found * 6, read, Style("text", statistics=True), files=1)
    assert text == "12  RB101  [-]  attribute-rebind\n 6  RB204  [ ]  one-shot-guard\n"
    assert "[*]" in report([HAZARD], read, Style("text", statistics=True), files=1)
    assert json.loads(report([HAZARD], read, Style("json", statistics=True), files=1)) == [
        {"code": "RB101", "name": "attribute-rebind", "count": 1, "fixable": True}
    ]


@pytest.mark.parametrize("format_", ["text", "concise"])
def test_colour_changes_nothing_but_the_escape_sequences(format_: str) -> None:
    coloured = report([HAZARD, PLAIN], read, Style(format_, colour=True), files=1)
    assert "\x1b[" in coloured
    assert Text.from_ansi(coloured).plain.rstrip("\n") == report([HAZARD, PLAIN], read, Style(format_), files=1).rstrip(
        "\n"
    )


def test_only_what_should_stand_out_is_coloured() -> None:
    lines = report([HAZARD], read, Style(colour=True), files=1).splitlines()
    code, message = f"\x1b[1;31m{HAZARD.code}\x1b[0m", f"\x1b[1m {HAZARD.message}\x1b[0m"
    assert lines[0].startswith(code)
    assert lines[0].endswith(message)
    above = HAZARD.place.start.row - 1
    source = read(HAZARD.place.filename).splitlines()[above - 1].expandtabs(4)
    assert f"\x1b[1;34m{above} |\x1b[0m {source}" in lines
    assert any(line.startswith("\x1b[1;34mnote: \x1b[0mseverity") for line in lines)


def test_of_a_very_long_line_the_part_around_the_finding_is_shown() -> None:
    line = "a" * 3_000 + "bad" + "c" * 3_000
    frame = plain(source_frame(f"{line}\n", place(1, 3_001, 1, 3_004), "red"))
    source, marks = frame[1], frame[2]
    assert len(source) < 260
    assert source.startswith("1 | ...a")
    assert source.endswith("c...")
    assert marks.index("^") == source.index("bad")
    assert marks.count("^") == 3
    frame = plain(source_frame(f"{line}\n", place(1, 2, 1, 4), "red"))
    assert frame[1] == "1 | " + "a" * 240 + "..."
    assert frame[2] == "  |  ^^"


def test_narrow_terminals_get_the_same_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = report([HAZARD], read, Style(colour=True), files=1)
    monkeypatch.setenv("COLUMNS", "20")
    assert report([HAZARD], read, Style(colour=True), files=1) == wide


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "terminal", "colour"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, False, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
    ],
)
def test_when_there_is_colour(environment: dict[str, str], terminal: bool, colour: bool) -> None:
    assert use_colour(Terminal() if terminal else io.StringIO(), environment) is colour
