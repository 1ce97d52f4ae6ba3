from __future__ import annotations

import json

import pytest

from rebindlint.model import Protocol, Severity
from rebindlint.report.json import as_record
from rebindlint.runtime.findings import Comparison, Finding, Reader, StorageState, make_finding
from rebindlint.runtime.report import Report
from rebindlint.runtime.sites import Site, definition_site, resolve, shown

SITE = Site(__file__, 7, 5, 7, 12, "Layer.process_weights_after_loading")
READER = Reader("aten.mm.default", "mat2", "read", Site(__file__, 3, 1, 3, 4, "Layer.forward"))


def finding(code: str = "RT101", **rest: object) -> Finding:
    return make_finding(code, "something was bound", SITE, Protocol.LAYERWISE, tensor="model.w", **rest)


def full() -> Finding:
    return finding(
        module="Layer",
        reader=READER,
        rebound=(SITE, Site(__file__, 9, 1, 9, 2, "reload")),
        hook="Layer.process_weights_after_loading",
        old=StorageState(0x10, 64, "cpu", "unowned"),
        new=StorageState(0x20, 64, "cpu", "live"),
        compared=Comparison("values", "exact", False, 2.5, 0.5),
        evidence=("it was filled with NaN",),
        also=("model.alias",),
    )


def test_json_has_the_static_halfs_keys_and_the_runtime_ones() -> None:
    (record,) = json.loads(json.dumps(Report((full(),)).to_json()))
    static = list(as_record(full().diagnostic()))
    runtime = ["tensor", "also", "module", "read_by", "rebound_at", "old_storage", "new_storage", "compared", "evidence", "static_rules"]  # fmt: skip
    assert list(record) == static + runtime
    assert {"code", "severity", "filename", "location", "attribute", "hook", "reload", "trace", "fix", "url"} <= set(
        static
    )
    assert record["code"] == "RT101"
    assert record["name"] == "held-dead"
    assert record["severity"] == "error"
    assert record["location"] == {"row": 7, "column": 5}
    assert record["end_location"] == {"row": 7, "column": 12}
    assert record["reload"] == ["layerwise"]
    assert [step["row"] for step in record["trace"]] == [9, 7]  # outermost first
    assert record["read_by"]["at"]["function"] == "Layer.forward"
    assert record["rebound_at"]["row"] == 7
    assert record["old_storage"] == {"address": "0x10", "nbytes": 64, "device": "cpu", "state": "unowned"}
    assert record["compared"]["max_difference"] == 2.5
    assert "RB101" in record["static_rules"]


def test_json_stays_valid_where_numbers_are_not_finite() -> None:
    records = Report((finding(compared=Comparison("x", "exact", False, float("nan"), 1.0)),)).to_json()
    assert json.loads(json.dumps(records, allow_nan=False))[0]["compared"]["max_difference"] is None


def test_a_finding_is_a_diagnostic_in_the_static_halfs_terms() -> None:
    diagnostic = full().diagnostic()
    assert (diagnostic.code, diagnostic.name, diagnostic.attribute) == ("RT101", "held-dead", "model.w")
    assert diagnostic.reload == (Protocol.LAYERWISE,)
    assert (diagnostic.place.start.row, diagnostic.place.start.column) == (7, 5)
    assert len(diagnostic.trace) == 2


def test_text_says_everything_that_is_known() -> None:
    text = Report(
        (full(),), (Comparison("a against b", "exact", True),), ("a note",), "recorded operators", 3, 2, "cpu"
    ).text()
    for part in (
        "RT101 error: something was bound",
        f"--> {__file__}:7:5",
        "module: Layer",
        "also: model.alias",
        "read by: aten.mm.default (mat2)",
        f"= rebound at: {__file__}:7 in ",
        f"= called from: {__file__}:9 in reload",
        "old storage: 0x10 (64 bytes on cpu; nothing but the captured step keeps it)",
        "compared: values (exact): different, largest difference 2.5, 50% NaN",
        "evidence: it was filled with NaN",
        "reload: layerwise",
        "see: rebindlint explain RT101",
        "captured: 3 operators (recorded operators) holding 2 storages on cpu",
        "compared: a against b (exact): equal",
        "note: a note",
        "Found 1 error.",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("codes", "ok", "exit_code", "summary"),
    [
        ([], True, 0, "Nothing found"),
        (["RT109"], True, 0, "Found 1 note."),
        (["RT107"], True, 1, "Found 1 warning."),
        (["RT101", "RT102", "RT109"], False, 1, "Found 2 errors, 1 note."),
    ],
)
def test_severity_decides(codes: list[str], ok: bool, exit_code: int, summary: str) -> None:
    report = Report(tuple(finding(code) for code in codes))
    assert (report.ok, report.exit_code) == (ok, exit_code)
    assert summary in report.text()


def test_notes_alone_are_said_to_be_harmless_where_a_step_was_captured() -> None:
    def last(code: str) -> str:
        return Report((finding(code),), kind="recorded operators").text().splitlines()[-1]

    assert last("RT109") == "Found 1 note, and nothing worse: the reload is safe for the captured step."
    assert last("RT107") == "Found 1 warning."


def test_what_was_restricted_to_some_layers_is_not_called_safe() -> None:
    def last(*codes: str) -> str:
        findings = tuple(finding(code) for code in codes)
        return Report(findings, kind="recorded operators", only="layers a.*").text().splitlines()[-1]

    assert last() == "Nothing found about layers a.*."
    assert last("RT109") == "Found 1 note about layers a.*."


def test_notes_are_one_line_unless_asked_for() -> None:
    report = Report((finding("RT109"),))
    assert "-->" not in report.text()
    assert "-->" in report.text(verbose=True)


def test_a_severity_can_be_given() -> None:
    assert finding("RT108").severity is Severity.ERROR
    assert finding("RT108", severity=Severity.NOTE).severity is Severity.NOTE


def test_places_count_characters_from_one() -> None:
    import sys

    é = sys._getframe(); raw = (é.f_code, é.f_lasti)  # fmt: skip  # noqa: E702
    site = resolve(raw)
    assert site.row == SITE_ROW(raw)
    line = site.text
    assert line.startswith("é = sys._getframe()")
    assert site.column > 5
    assert site.function == "test_places_count_characters_from_one"


def SITE_ROW(raw: object) -> int:
    from pathlib import Path

    assert raw
    rows = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(n for n, text in enumerate(rows, 1) if text.strip().startswith("é = "))


def test_files_are_shown_as_a_user_would_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from pathlib import Path

    monkeypatch.chdir(Path(__file__).parent)
    assert shown(__file__) == "test_report.py"
    assert shown("/nowhere/else.py") == "/nowhere/else.py"


def test_a_callable_has_a_place_whatever_it_is() -> None:
    import functools

    assert definition_site(full).function == "full"
    assert (
        definition_site(
            Report(
                (),
            ).text
        ).function
        == "Report.text"
    )
    assert definition_site(functools.partial(full)).row >= 1
    assert definition_site(print).row == 1
