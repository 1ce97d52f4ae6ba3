"""Texts, edits and files written in one step."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from rebindlint.discover import Source
from rebindlint.model import Edit, Place, Position, RebindlintError
from rebindlint.texts import Texts, edited, write_output, write_source


def edit(row: int, column: int, end_row: int, end_column: int, content: str) -> Edit:
    return Edit(Place("a.py", Position(row, column), Position(end_row, end_column)), content)


def test_edits_count_characters_and_python_s_lines() -> None:
    text = "é = 1\r\nb\x0c = 2\rc = 3"
    assert edited(text, [edit(2, 6, 2, 7, "22"), edit(1, 1, 1, 2, "ä")]) == "ä = 1\r\nb\x0c = 22\rc = 3"
    assert edited(text, [edit(3, 1, 4, 1, "")]) == "é = 1\r\nb\x0c = 2\r"
    assert edited(text, []) == text


def test_insertions_at_one_place_keep_a_stable_order() -> None:
    edits = [edit(1, 1, 1, 1, "a\n"), edit(1, 1, 1, 1, "b\n")]
    assert edited("x\n", edits) == edited("x\n", reversed(edits)) == "a\nb\nx\n"


@pytest.mark.parametrize(
    "edits",
    [
        [edit(1, 1, 1, 3, ""), edit(1, 2, 1, 4, "")],
        [edit(9, 1, 9, 2, "")],
        [edit(2, 9, 2, 10, "")],
        [edit(0, 1, 1, 1, "")],
    ],
)
def test_edits_that_overlap_or_lie_outside_are_refused(edits: list[Edit]) -> None:
    with pytest.raises(ValueError, match=r"overlap|not in"):
        edited("abc\nd", edits)


def test_texts_read_once_and_carry_changes(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a\n")
    texts = Texts([Source(tmp_path / "a.py", "a.py", "a"), Source(tmp_path / "b.py", "b.py", "b", "b\n")])
    assert (texts.read("a.py"), texts.read("b.py")) == ("a\n", "b\n")
    (tmp_path / "a.py").write_text("other\n")
    assert texts.read("a.py") == "a\n"
    texts.change({"a.py": "A\n", "b.py": "b\n"})
    assert texts.read("a.py") == "A\n"
    assert [(change.source.shown, change.before, change.after) for change in texts.changed()] == [
        ("a.py", "a\n", "A\n")
    ]
    assert [source.text for source in texts.sources()] == ["A\n", "b\n"]
    assert [source.text for source in texts.originals()] == [None, "b\n"]
    with pytest.raises(RebindlintError, match=r"^c\.py: not among the files"):
        texts.read("c.py")


def test_a_text_that_its_encoding_cannot_hold_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"# coding: ascii\n")
    with pytest.raises(RebindlintError, match=r"a\.py: cannot be written: 'ascii' codec"):
        write_source(file, "# coding: ascii\nx = 'é'\n")
    assert file.read_bytes() == b"# coding: ascii\n"


def test_nothing_is_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.py"
    file.write_text("old\n")

    def full(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(RebindlintError, match="No space left on device"):
        write_source(file, "new\n")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.py", "old\n")]


def test_a_write_protected_file_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rename would replace it all the same; root may write everything, so the system's answer is given here."""
    file = tmp_path / "a.py"
    file.write_text("old\n")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(RebindlintError, match=r"a\.py: cannot be written: it is write-protected$"):
        write_source(file, "new\n")
    assert file.read_text() == "old\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_file_keeps_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("old\n")
    os.chown(file, 4321, 4322)
    write_source(file, "new\n")
    status = file.stat()
    assert (file.read_text(), status.st_uid, status.st_gid) == ("new\n", 4321, 4322)


def test_a_report_is_written_with_the_usual_mode_and_over_an_old_one(tmp_path: Path) -> None:
    file = tmp_path / "report.txt"
    old = os.umask(0o027)
    try:
        write_output(file, "snow\udcff\n")
    finally:
        os.umask(old)
    assert (stat.S_IMODE(file.stat().st_mode), file.read_bytes()) == (0o640, b"snow\\udcff\n")
    file.chmod(0o600)
    write_output(file, "again\n")
    assert (stat.S_IMODE(file.stat().st_mode), file.read_text()) == (0o600, "again\n")
    with pytest.raises(RebindlintError, match="cannot be written"):
        write_output(tmp_path / "none" / "report.txt", "")
