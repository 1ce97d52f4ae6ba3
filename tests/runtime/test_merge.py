from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rebindlint.model import Protocol
from rebindlint.runtime.findings import Comparison, Finding, Reader, StorageState, make_finding
from rebindlint.runtime.merge import report_command
from rebindlint.runtime.sites import Site
from rebindlint.runtime.vllm.ranks import RankReport, Reload, Writer

LINE = Site("vllm/mla.py", 10, 5, 10, 20, "MLA.process")
READER = Reader("aten.bmm.out", "mat2", "read", Site("vllm/mla.py", 40, 9, 40, 30, "MLA.forward"))
OLD, NEW = StorageState(0x1000, 64, "cpu", "unowned"), StorageState(0x2000, 64, "cpu", "live")


def dead(tensor: str = "model.w_uv", address: int = 0x1000) -> Finding:
    return make_finding(
        "RT101",
        f"`{tensor}` was bound to other storage",
        LINE,
        Protocol.LAYERWISE,
        tensor=tensor,
        reader=READER,
        rebound=(LINE,),
        old=StorageState(address, 64, "cpu", "unowned"),
        new=NEW,
    )


def stale(gap: float) -> Finding:
    compared = Comparison("replay against eager", "exact", False, gap)
    return make_finding("RT102", f"another result ({gap})", LINE, Protocol.LAYERWISE, compared=compared)


def unread() -> Finding:
    return make_finding("RT109", "`model.k` was bound to other storage", LINE, Protocol.LAYERWISE, tensor="model.k")


def reload(number: int, *findings: Finding, state: str = "judged", **rest: Any) -> Reload:
    return Reload(number, "reload_weights", state, "layerwise", findings=[f.to_json() for f in findings], **rest)


def rank(folder: Path, number: int, *reloads: Reload, size: int = 2, engine: str = "e1", **rest: Any) -> Path:
    report = RankReport(engine, number, size, reloads=list(reloads), started=100.0 + number, **rest)
    report.write(folder)
    return folder / report.filename


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(report_command, [str(folder), *arguments])


def test_one_hazard_on_all_ranks_is_one_finding(tmp_path: Path) -> None:
    rank(tmp_path, 0, reload(1, dead()), reload(2, dead(), stale(0.5)))
    rank(tmp_path, 1, reload(1, dead(address=0x7000)), reload(2, dead(), stale(0.25)))
    result = run(tmp_path)
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.count("RT101 error: `model.w_uv` was bound to other storage") == 1
    assert "evidence: seen by ranks 0-1 in reloads 1-2\n" in result.stdout
    assert "evidence: seen by ranks 0-1 in reload 2\n" in result.stdout
    assert "read by: aten.bmm.out (mat2) at vllm/mla.py:40 in MLA.forward" in result.stdout
    assert "rebound at: vllm/mla.py:10 in MLA.process" in result.stdout
    assert "rank 1 of 2: reload 2 (reload_weights) judged: 2 errors; " in result.stdout
    assert result.stdout.endswith("Found 2 errors.\n")


def test_json_has_the_keys_of_other_reports_and_where_it_was_seen(tmp_path: Path) -> None:
    rank(tmp_path, 0, reload(1, dead()), size=1)
    (record,) = json.loads(run(tmp_path, "--output-format", "json").stdout)
    seen = record.pop("seen")
    assert record == dead().to_json()
    place = {"engine": "e1", "data_parallel_rank": 0, "rank": 0, "reload": 1, "opened_by": "reload_weights"}
    assert seen == [place]


def test_clean_ranks_exit_with_zero_notes_too(tmp_path: Path) -> None:
    rank(tmp_path, 0, reload(1))
    rank(tmp_path, 1, reload(1))
    result = run(tmp_path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[-1] == "Nothing found."
    assert json.loads(run(tmp_path, "--output-format", "json").stdout) == []
    rank(tmp_path, 1, reload(1, unread()))
    result = run(tmp_path)
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "Found 1 note.")


def test_a_missing_rank_is_named(tmp_path: Path) -> None:
    rank(tmp_path, 0, reload(1), size=8)
    rank(tmp_path, 3, reload(1, dead()), size=8)
    result = run(tmp_path)
    assert result.exit_code == 2
    assert result.stderr == "rebindlint: ranks 1-2, 4-7 of 8 wrote no report\n"
    assert "RT101 error" in result.stdout


def test_a_rank_that_died_in_a_reload_is_named(tmp_path: Path) -> None:
    rank(tmp_path, 0, reload(1), reload(2, state="running"), size=1)
    result = run(tmp_path)
    assert (result.exit_code, result.stderr) == (
        2,
        "rebindlint: rank 0 of 1 did not get through reload 2 (reload_weights)\n",
    )


def test_what_went_wrong_on_a_rank_is_told(tmp_path: Path) -> None:
    failed = reload(1, state="failed", error="ValueError: a broken checkpoint")
    path = "vllm.v1.worker.gpu_worker.Worker.finish_weight_update"
    rank(
        tmp_path, 0, failed, size=1, problems=["sleep was not judged: ours"], missing_hook_points=[path], versions={"vllm": "0.20.2"}
    )  # fmt: skip
    result = run(tmp_path)
    assert (result.exit_code, result.stderr) == (2, "rebindlint: rank 0 of 1: sleep was not judged: ours\n")
    assert "reload 1 (reload_weights) raised ValueError: a broken checkpoint: nothing found" in result.stdout
    assert f"rank 0 of 1: vLLM 0.20.2 has no {path}" in result.stdout


def test_ranks_without_a_reload_prove_nothing(tmp_path: Path) -> None:
    rank(tmp_path, 0, size=1)
    result = run(tmp_path)
    assert (result.exit_code, result.stderr) == (2, "rebindlint: no reload was seen\n")


def test_engines_are_told_apart(tmp_path: Path) -> None:
    rank(tmp_path, 0, reload(1, dead()), size=1, engine="e1")
    rank(tmp_path, 0, reload(3, dead()), size=2, engine="e2")
    rank(tmp_path, 0, reload(1), size=1, engine="e3", data_parallel_rank=1, data_parallel_size=2)
    result = run(tmp_path)
    assert result.stderr == "rebindlint: rank 1 of 2 wrote no report (engine e2)\n"
    assert "seen by rank 0 in reload 1 of engine e1; rank 0 in reload 3 of engine e2" in result.stdout
    assert "engine e3, rank 0 of 1, data-parallel rank 1: reload 1" in result.stdout


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"format": 1, "engine"', "broken report: "),
        (b"\xff\xfe", "broken report: "),
        (b"[]", "no report of a rank"),
        (b'{"format": 7}', "written in format 7, this version reads format 1"),
        (b'{"format": 1, "engine": "e", "rank": "x"}', "broken report: no rank"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_the_others_count(tmp_path: Path, content: bytes, reason: str) -> None:
    rank(tmp_path, 0, reload(1, dead()), size=1)
    broken = tmp_path / "x.rank.json"
    broken.write_bytes(content)
    result = run(tmp_path)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"rebindlint: {broken}: {reason}")
    assert result.stderr.count("\n") == 1
    assert "Found 1 error." in result.stdout


@pytest.mark.parametrize("key", ["findings", "notes", "state"])
def test_a_reload_without_a_part_is_a_broken_report(tmp_path: Path, key: str) -> None:
    path = rank(tmp_path, 0, reload(1), size=1)
    record = json.loads(path.read_text())
    del record["reloads"][0][key]
    path.write_text(json.dumps(record))
    result = run(tmp_path)
    assert (result.exit_code, result.stderr) == (2, f"rebindlint: {path}: broken report: no {key}\n")


def test_details_of_another_version_do_not_hide_the_finding(tmp_path: Path) -> None:
    path = rank(tmp_path, 0, reload(1, dead()), size=1)
    record = json.loads(path.read_text())
    record["reloads"][0]["findings"][0]["old_storage"] = {"where": "elsewhere"}
    path.write_text(json.dumps(record))
    result = run(tmp_path)
    assert result.exit_code == 1
    assert "RT101 error: `model.w_uv` was bound to other storage" in result.stdout


def test_folders_that_hold_nothing(tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    assert run(absent).stderr == f"rebindlint: {absent}: no such folder\n"
    assert run(tmp_path).stderr == f"rebindlint: {tmp_path}: no reports of ranks in there\n"
    (tmp_path / "file").write_text("")
    assert run(tmp_path / "file").stderr == f"rebindlint: {tmp_path / 'file'}: not a folder\n"
    assert run(absent).exit_code == run(tmp_path).exit_code == 2


def test_a_report_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = RankReport("e/1", 0, 1, reloads=[reload(1)])
    report.write(tmp_path)
    (path,) = tmp_path.iterdir()
    assert path.name == f"e-1-dp0-rank0-{os.getpid()}.rank.json"
    before = path.read_bytes()

    def full(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    report.reloads.append(reload(2))
    with pytest.raises(OSError, match="No space left"):
        report.write(tmp_path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_folder_that_comes_back_is_written_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "out"
    folder.write_text("in the way")
    writer = Writer(RankReport("e", 3, 4), folder)
    writer.write()
    writer.write()
    folder.unlink()
    writer.write()
    assert capsys.readouterr().err == f"rebindlint: rank 3: report not written, {folder}: File exists\n"
    assert len(list(folder.iterdir())) == 1
