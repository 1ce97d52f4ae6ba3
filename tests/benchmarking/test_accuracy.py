"""Labels are read strictly, samples can be drawn again, and the figures follow from both."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.accuracy.__main__ import holds, main, markdown, report
from benchmarks.accuracy.labels import Label, labelled_trees, load, store
from benchmarks.accuracy.measure import Share, measure
from benchmarks.accuracy.sample import draw, label_of
from benchmarks.accuracy.sample import main as sample_main
from benchmarks.accuracy.writes import Write, is_flagged, writes_of
from benchmarks.released import folder_of
from rebindlint.model import RebindlintError

TREE = "engine-1.0"
SAMPLED = ("vllm-0.33.0", "vllm-0.25.1", "sglang-0.5.23")


def _finding(line: int, attribute: str = "self.w", severity: str = "error", code: str = "RB101") -> dict[str, Any]:
    place = {"row": line, "column": 1}
    return {
        "code": code,
        "severity": severity,
        "filename": "engine/a.py",
        "location": place,
        "end_location": place,
        "attribute": attribute,
        "hook": "A.hook",
        "trace": [{"filename": "engine/a.py", "row": line, "text": "A.hook"}],
    }


def _labelled(finding: dict[str, Any], label: str) -> Label:
    return replace(label_of(TREE, finding), label=label, reason="read")


def _write(line: int, attribute: str = "self.w") -> Write:
    return Write("engine/a.py", line, line, attribute, "A.hook")


def _silent(line: int, label: str) -> Label:
    return Label(TREE, "unflagged", "engine/a.py", line, "self.w", "A.hook", label=label, reason="read")


# ---- labels


def test_labels_come_back_as_they_were_stored_one_a_line(tmp_path: Path) -> None:
    labels = [_labelled(_finding(3), "hazard"), _silent(9, "safe"), _labelled(_finding(2, code="RB103"), "false-alarm")]
    path = store(TREE, labels, tmp_path)
    assert load(TREE, tmp_path) == [labels[2], labels[0], labels[1]]
    assert len(path.read_text(encoding="utf-8").splitlines()) == len(labels) + 2
    assert labelled_trees(tmp_path) == (TREE,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": "true"}, "is no label of kind"),
        ({"label": "missed"}, "is no label of kind"),
        ({"kind": "guess"}, "is no label of kind"),
        ({"reason": ""}, "no reason"),
        ({"tree": "engine-2.0"}, "the tree is"),
        ({"line": "3"}, "`line` is no int"),
        ({"lines": 3}, "no key `lines`"),
    ],
)
def test_a_faulty_entry_is_refused_in_one_line(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    store(TREE, [_labelled(_finding(3), "hazard")], tmp_path)
    path = tmp_path / f"{TREE}.json"
    entry = {**json.loads(path.read_text(encoding="utf-8"))[0], **change}
    path.write_text(json.dumps([entry]), encoding="utf-8")
    with pytest.raises(RebindlintError, match=message) as caught:
        load(TREE, tmp_path)
    assert "\n" not in str(caught.value)


def test_a_place_is_labelled_once(tmp_path: Path) -> None:
    store(TREE, [_labelled(_finding(3), "hazard"), _labelled(_finding(3), "false-alarm")], tmp_path)
    with pytest.raises(RebindlintError, match="twice"):
        load(TREE, tmp_path)


@pytest.mark.parametrize("tree", labelled_trees())
def test_labels_of_the_repository_can_be_read(tree: str) -> None:
    assert {label.tree for label in load(tree)} <= {tree}


@pytest.mark.parametrize("tree", SAMPLED)
def test_the_samples_of_the_repository_are_large_enough(tree: str) -> None:
    labels = load(tree)
    for kind in ("finding", "unflagged"):
        assert sum(label.kind == kind and label.label != "" for label in labels) >= 60


# ---- samples


def test_a_sample_depends_on_its_seed_alone() -> None:
    population = [label_of(TREE, _finding(line)) for line in range(1, 101)]
    assert draw(population, [], 10, 1) == draw(population[::-1], [], 10, 1)
    assert draw(population, [], 10, 1) != draw(population, [], 10, 2)
    assert len(set(draw(population, [], 10, 1))) == 10
    assert len(draw(population, [], 200, 1)) == 100


def test_what_is_labelled_counts_and_stays() -> None:
    population = [label_of(TREE, _finding(line)) for line in range(1, 101)]
    known = [replace(label, label="hazard", reason="read") for label in draw(population, [], 10, 1)]
    more = draw(population, known, 15, 1)
    assert len(more) == 5
    assert {label.place for label in more}.isdisjoint(label.place for label in known)


def test_all_errors_are_drawn_beside_the_warnings_asked_for() -> None:
    population = [label_of(TREE, _finding(line, severity="error" if line % 2 else "warning")) for line in range(1, 41)]
    drawn = draw(population, [], 5, 1, all_errors=True)
    assert [sum(label.severity == severity for label in drawn) for severity in ("error", "warning")] == [20, 5]


# ---- writes


def test_writes_of_hooks_and_of_what_they_call(tmp_path: Path) -> None:
    package = tmp_path / "engine"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "pack.py").write_text(
        "def pack(layer):\n"
        "    def inner(p):\n"
        "        p.data = p.data.t()\n"
        "    inner(layer.weight)\n"
        "    setattr(layer, 'scale', layer.weight.sum())\n"
        "    layer.flag = True\n"
        "def unused(layer):\n"
        "    layer.w = layer.weight + 1\n"
    )
    (package / "layers.py").write_text(
        "from torch import nn\n"
        "class Kernel:\n"
        "    def __init__(self, w):\n"
        "        self.w = w\n"
        "class Layer(nn.Module):\n"
        "    def process_weights_after_loading(self):\n"
        "        from engine.pack import pack\n"
        "        pack(self)\n"
        "        self.kernel, self.n = Kernel(self.weight), 3\n"
        "        del self.weight\n"
        "        self.step()\n"
        "    def step(self):\n"
        "        self.table[0] = self.weight.clone()\n"
        "    def forward(self, x):\n"
        "        self.last = x\n"
    )
    assert [(Path(w.path).name, w.line, w.attribute) for w in writes_of(tmp_path, "engine")] == [
        ("layers.py", 4, "self.w"),
        ("layers.py", 9, "self.kernel"),
        ("layers.py", 9, "self.n"),
        ("layers.py", 10, "self.weight"),
        ("layers.py", 13, "self.table[0]"),
        ("pack.py", 3, "p.data"),
        ("pack.py", 5, "layer.scale"),
    ]


def test_a_write_is_flagged_where_a_finding_stands_or_passes() -> None:
    finding = _finding(3)
    finding["trace"].append({"filename": "engine/b.py", "row": 7, "text": "f"})
    assert is_flagged(_write(3), [finding])
    assert not is_flagged(_write(4), [finding])
    assert is_flagged(Write("engine/b.py", 6, 8, "self.x", "A.hook"), [finding])
    assert not is_flagged(Write("engine/b.py", 8, 8, "self.x", "A.hook"), [finding])


# ---- figures


def test_an_error_must_hold_under_the_own_protocol_and_a_warning_under_any() -> None:
    findings = [_finding(n, severity="error" if n < 5 else "warning") for n in range(1, 9)]
    given = ["hazard", "hazard", "other-protocol", "cannot-tell", "hazard", "other-protocol", "false-alarm", "hazard"]
    labels = [_labelled(finding, label) for finding, label in zip(findings, given, strict=True)]
    measured = measure(TREE, labels, findings, [])
    assert measured.now == {"error": Share(2, 3, 1), "warning": Share(3, 4, 0)}
    assert [label.line for label in measured.wrong] == [3, 7]
    assert not holds(measured)


def test_what_the_linter_no_longer_says_is_no_longer_judged_but_listed() -> None:
    findings = [_finding(n) for n in range(1, 6)]
    labels = [_labelled(f, label) for f, label in zip(findings, ["hazard"] * 3 + ["false-alarm"] * 2, strict=True)]
    measured = measure(TREE, labels, findings[1:4], [])
    assert measured.now["error"] == Share(2, 3, 0)
    assert measured.sampled["error"] == Share(3, 5, 0)
    assert [label.line for label in measured.gone] == [1, 5]
    assert "hazards whose finding is gone: 1" in report(measured)


def test_a_finding_keeps_its_label_under_another_code_and_severity() -> None:
    label = _labelled(_finding(1, "layer.w"), "other-protocol")
    measured = measure(TREE, [label], [_finding(1, "self.kernel.w", "warning", "RB103")], [])
    assert measured.now == {"error": Share(), "warning": Share(1, 1, 0)}
    assert measured.gone == []


def test_a_hazard_that_is_only_a_warning_now_is_right_and_listed() -> None:
    labels = [_labelled(_finding(1), "hazard"), _labelled(_finding(2, severity="warning"), "hazard")]
    measured = measure(TREE, labels, [_finding(1, severity="warning"), _finding(2, severity="warning")], [])
    assert measured.now["warning"] == Share(2, 2, 0)
    assert [label.line for label in measured.demoted] == [1]
    assert "hazards that were errors and are warnings now: 1" in report(measured)


def test_missed_writes_scale_to_all_silent_ones() -> None:
    findings = [_finding(n) for n in range(1, 11)]
    labels = [_labelled(f, "hazard") for f in findings]
    labels += [_silent(n, "missed" if n == 20 else "safe") for n in range(20, 40)]
    writes = [_write(n) for n in range(1, 60)]
    measured = measure(TREE, labels, findings, writes)
    assert measured.unflagged == 49
    assert measured.missed == measured.missed_own == Share(1, 20, 0)
    assert measured.recall == pytest.approx(10 / (10 + 49 / 20))
    assert measured.recall_at_least is not None
    assert measured.recall_at_least < 10 / (10 + 49 / 20)
    assert [label.line for label in measured.misses] == [20]


def test_a_write_missed_under_another_protocol_is_told_apart() -> None:
    labels = [_silent(1, "other-protocol"), _silent(2, "missed"), _silent(3, "cannot-tell"), _silent(4, "safe")]
    measured = measure(TREE, labels, [], [_write(n) for n in range(1, 10)])
    assert (measured.missed, measured.missed_own) == (Share(2, 3, 1), Share(1, 3, 1))
    assert measured.recall is None


def test_a_gone_hazard_lowers_recall_and_a_caught_miss_is_no_miss() -> None:
    findings = [_finding(n) for n in range(1, 11)]
    labels = [_labelled(f, "hazard") for f in findings] + [_silent(20, "missed"), _silent(21, "safe")]
    writes = [_write(n) for n in range(1, 31)]
    measured = measure(TREE, labels, [*findings[1:], _finding(20)], writes)
    assert [label.line for label in measured.caught] == [20]
    assert measured.missed == Share(0, 1, 0)
    assert measured.recall == pytest.approx(10 / 11)


def test_entries_without_a_label_and_errors_without_an_entry_are_listed() -> None:
    waiting = label_of(TREE, _finding(1))
    measured = measure(TREE, [waiting], [_finding(1), _finding(2)], [])
    assert measured.unlabelled == [waiting]
    assert [label.line for label in measured.new_errors] == [1, 2]
    assert not holds(measured)


def test_the_interval_of_a_share_holds_the_share_and_stays_in_bounds() -> None:
    for right, decided in ((0, 60), (57, 60), (60, 60)):
        low, high = Share(right, decided).interval
        assert 0 <= low <= right / decided <= high <= 1
    assert Share().interval == (0.0, 1.0)
    assert Share(60, 60).interval[0] == pytest.approx(0.94, abs=0.005)


def test_the_table_has_a_line_for_each_tree() -> None:
    findings = [_finding(1)]
    measured = measure(TREE, [_labelled(findings[0], "hazard")], findings, [])
    assert (
        markdown([measured, measured]).splitlines()[2:]
        == [
            f"| {TREE} | 1 | 100.0% (1 of 1) | 0 | unknown (no label) | 0 | 0 of 0, 0 under the own protocol | unknown |"
        ]
        * 2
    )


# ---- commands


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A released tree of one hook that is flagged once, at hand in the corpus, and an empty folder of labels."""
    corpus, labels = tmp_path / "corpus" / TREE, tmp_path / "labels"
    (corpus / "engine").mkdir(parents=True)
    labels.mkdir()
    (corpus / ".complete").touch()
    (corpus / "engine" / "__init__.py").write_text("")
    (corpus / "engine" / "a.py").write_text(
        "from torch import nn\n"
        "class Layer(nn.Module):\n"
        "    def process_weights_after_loading(self):\n"
        "        self.packed = self.weight.float() * 2\n"
        "        self.size = self.weight.shape[0]\n"
        "    def forward(self, x):\n"
        "        return x @ self.packed[: self.size]\n"
    )
    monkeypatch.setenv("REBINDLINT_CORPUS", str(tmp_path / "corpus"))
    monkeypatch.setattr("benchmarks.accuracy.labels.FOLDER", labels)
    return labels


def test_a_tree_is_sampled_labelled_and_measured(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sample_main([TREE, "--seed", "1"]) == 0
    drawn = load(TREE)
    assert [(label.kind, label.attribute, label.severity) for label in drawn] == [
        ("finding", "self.packed", "error"),
        ("unflagged", "self.size", ""),
    ]
    assert main([TREE]) == 1
    assert "entries without a label: 2" in capsys.readouterr().out
    given = {"finding": "hazard", "unflagged": "safe"}
    store(TREE, [replace(label, label=given[label.kind], reason="read") for label in drawn])
    assert sample_main([TREE, "--seed", "2"]) == 0
    assert [label.label for label in load(TREE)] == ["hazard", "safe"]
    assert main([TREE]) == 0
    assert "errors: 1 now, precision 100.0% (1 of 1" in capsys.readouterr().out


def test_what_cannot_run_is_said_in_one_line(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([TREE]) == 2
    assert capsys.readouterr().err == f"accuracy: {TREE} has no labels\n"


def test_a_release_that_cannot_be_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        assert command[-1] == "engine==1.0"
        return subprocess.CompletedProcess(command, 1, "", "Looking\nERROR: no such release\n")

    monkeypatch.setenv("REBINDLINT_CORPUS", str(tmp_path))
    monkeypatch.setattr(subprocess, "run", refuse)
    with pytest.raises(RebindlintError, match=r"^engine==1\.0 cannot be downloaded: ERROR: no such release$"):
        folder_of(TREE)
    assert not (tmp_path / TREE / ".complete").exists()
