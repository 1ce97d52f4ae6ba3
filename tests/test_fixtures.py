"""The cases of ``tests/fixtures/<rule>/<case>/``: what is flagged, what the fix gives, and what both do to real tensors.

A case is a folder with

- ``before.py``, or a folder ``before/`` for code of several files; each is linted as a project of its own. A line to be flagged ends in ``# RB101``
  (``# RB101, RB103 warning`` for an error and a warning); a finding on a statement of several lines is marked on the first. The markers are taken out
  before linting, so that they neither keep a fix from a line nor turn up in what it gives.
- ``after.py`` (``after/``), exactly when something is fixed; the lines that are still flagged then are marked in it. Fixes that a person has to look
  at are applied only in cases with ``unsafe`` in their name, where the safe ones alone must change nothing. A case without ``after`` must not be
  changed by any fix, safe or not. ``pytest --update`` writes it.
- ``tree``, when the code stands in an engine: the name of a folder of ``tests/fixtures/_trees`` (``-`` for none) and the place of the hook's file in
  the project. Without it the file is called ``hooks.py``.
- ``reload``, when another reload than the engine's own comes between the runs: a value of the key of that name, such as ``sleep``.
- ``known_miss.txt`` when the engine does not get there yet: its text is the reason why the case is expected to fail.
- ``case.py``, when the case can be executed: ``build(module) -> Live`` (see ``live.py``), given the module of the hook's file.

A flagged ``before`` must show the hazard on real tensors: after the second load and run a captured cell has another address, is gone, or does not hold
what a fresh object holds after one. A silent ``before`` and every ``after`` must show none, and the first runs of both leave the same behind.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rebindlint import registry
from rebindlint.config import Config
from rebindlint.model import Diagnostic, Severity
from rebindlint.pipeline import Outcome, Request, run

if TYPE_CHECKING:
    from live import Look, Run

FIXTURES = Path(__file__).parent / "fixtures"
_MARKER = re.compile(rb"[ \t]+# (RB\d{3}(?: warning)?(?:,? RB\d{3}(?: warning)?)*)(?=\r?\n|\r?\Z)")
_ONE = re.compile(r"RB\d{3}(?: warning)?")

Texts = dict[str, bytes]
Flagged = list[tuple[str, int, str]]  # file, row, code (and severity, where it is no error)


@dataclass(frozen=True, slots=True)
class Case:
    folder: Path

    @property
    def name(self) -> str:
        return self.folder.relative_to(FIXTURES).as_posix()

    @property
    def unsafe(self) -> bool:
        return "unsafe" in self.folder.name

    @property
    def has_after(self) -> bool:
        return (self.folder / "after.py").exists() or (self.folder / "after").exists()

    @property
    def can_run(self) -> bool:
        return (self.folder / "case.py").exists()

    @property
    def tree(self) -> str:
        """The engine around the code, or nothing."""
        return self._tree()[0]

    @property
    def file(self) -> str:
        """Where the hook's file stands in its project."""
        return self._tree()[1]

    @property
    def reload(self) -> str | None:
        """The reload protocol to judge by, or None for the engine's own."""
        about = self.folder / "reload"
        return about.read_text(encoding="utf-8").strip() if about.exists() else None

    def _tree(self) -> tuple[str, str]:
        about = self.folder / "tree"
        tree, _, file = about.read_text(encoding="utf-8").strip().partition(" ") if about.exists() else ("", "", "")
        return tree, file or "hooks.py"

    @property
    def module(self) -> str:
        return self.file.removesuffix(".py").replace("/", ".")

    def marked(self, side: str) -> Texts:
        """The files of ``before`` or ``after`` as they are kept, with their markers."""
        single = self.folder / f"{side}.py"
        return {self.file: single.read_bytes()} if single.exists() else read(self.folder / side)

    def project(self, side: str, target: Path) -> Path:
        """The files without their markers, with the engine around them."""
        if self.tree not in ("", "-"):
            shutil.copytree(FIXTURES / "_trees" / self.tree, target)
        write(plain(self.marked(side)), target)
        return target

    def param(self) -> Any:
        miss = self.folder / "known_miss.txt"
        if not miss.exists():
            return pytest.param(self, id=self.name)
        reason = " ".join(miss.read_text(encoding="utf-8").split())
        return pytest.param(self, id=self.name, marks=pytest.mark.xfail(strict=True, reason=reason))


CASES = [Case(path) for path in sorted(FIXTURES.glob("*/*")) if any(path.glob("before*"))]


def plain(texts: Texts) -> Texts:
    return {name: _MARKER.sub(b"", raw) for name, raw in texts.items()}


def expected(texts: Texts) -> Flagged:
    found = []
    for name, raw in texts.items():
        for match in _MARKER.finditer(raw):
            row = raw.count(b"\n", 0, match.start()) + 1
            found += [(name, row, code) for code in _ONE.findall(match.group(1).decode())]
    return sorted(found)


def write(texts: Texts, folder: Path) -> None:
    for name, raw in texts.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(raw)


def read(folder: Path) -> Texts:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*.py"))}


def readable(texts: Texts) -> dict[str, str]:
    """For comparing: bytes that a person can read, line ends included."""
    return {name: raw.decode("latin-1") for name, raw in texts.items()}


def lint(case: Case, project: Path, *, fix: bool = False, unsafe: bool = False) -> Outcome:
    config = Config(root=project, jobs=1, reload=case.reload)
    outcome = run(Request((".",), config, fix=fix, unsafe=unsafe, cache=False, cwd=project))
    assert outcome.failures == ()
    return outcome


def flagged(outcome: Outcome) -> Flagged:
    found = (d for d in outcome.diagnostics if d.severity is not Severity.NOTE)
    return sorted((d.place.filename, d.place.start.row, _marker(d)) for d in found)


def _marker(diagnostic: Diagnostic) -> str:
    return diagnostic.code if diagnostic.severity is Severity.ERROR else f"{diagnostic.code} {diagnostic.severity}"


def update(case: Case, changed: Texts, outcome: Outcome) -> None:
    """Writes ``after``, with a marker on each line that is still flagged; takes it away where nothing is fixed."""
    (case.folder / "after.py").unlink(missing_ok=True)
    shutil.rmtree(case.folder / "after", ignore_errors=True)
    if changed == plain(case.marked("before")):
        return
    codes: dict[tuple[str, int], list[str]] = {}
    for name, row, code in flagged(outcome):
        codes.setdefault((name, row), []).append(code)
    single = (case.folder / "before.py").exists()
    for name, raw in changed.items():
        lines = raw.split(b"\n")
        for number, line in enumerate(lines, 1):
            if (name, number) in codes:
                body, cr = (line[:-1], b"\r") if line.endswith(b"\r") else (line, b"")
                lines[number - 1] = body + f"  # {', '.join(codes[name, number])}".encode() + cr
        write({"after.py" if single else f"after/{name}": b"\n".join(lines)}, case.folder)


@pytest.mark.parametrize("case", [case.param() for case in CASES])
def test_marked_lines_are_flagged_and_fixed(case: Case, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    marked = case.marked("before")
    project = case.project("before", tmp_path / "project")
    whole = read(project)
    assert flagged(lint(case, project)) == expected(marked)
    unsafe = case.unsafe or not case.has_after
    if case.unsafe:
        assert lint(case, project, fix=True).changed == (), "the safe fixes alone must change nothing"
    if request.config.getoption("--update"):
        unsafe = case.unsafe
    outcome = lint(case, project, fix=True, unsafe=unsafe)
    result = read(project)
    if request.config.getoption("--update"):
        update(case, {name: result[name] for name in marked}, outcome)
    after = case.marked("after") if case.has_after else marked
    assert readable(result) == readable({**whole, **plain(after)})
    assert flagged(outcome) == expected(after)
    assert case.has_after == (result != whole), "after must be there exactly when something is fixed"
    again = lint(case, project, fix=True, unsafe=unsafe)
    assert (again.changed, flagged(again)) == ((), expected(after))


def execute(case: Case, project: Path) -> tuple[Run, dict[str, Look], set[str]]:
    """The two runs, a first run on the second weights, and the cells that show a hazard."""
    import live

    with live.imported(project, case.module) as module:
        both, fresh = live.execute(live.loaded_case(case.folder / "case.py"), module)
    assert both.first, "a case that runs has cells"
    return both, fresh, both.moved() | both.stale(fresh)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES if case.can_run])
def test_real_tensors_agree(case: Case, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    marked = case.marked("before")
    before, _, hazards = execute(case, case.project("before", tmp_path / "before"))
    assert bool(hazards) == bool(expected(marked)), hazards
    if not case.has_after:
        return
    after, _, left = execute(case, case.project("after", tmp_path / "after"))
    assert bool(left) == bool(expected(case.marked("after"))), left
    assert before.first.keys() == after.first.keys()
    for name, old in before.first.items():
        new = after.first[name]
        assert old.same_layout(new), name
        assert name in before.scratch or torch.equal(old.values, new.values), name


def test_every_rule_over_facts_has_a_flagged_and_a_silent_case() -> None:
    silent: list[str] = []
    flagless: list[str] = []
    for rule in registry.rules():
        if rule.code < "RB1":
            continue  # about files and comments, no facts; tested with the pipeline
        stem = type(rule).__module__.rpartition(".")[2]
        codes = [
            {code[:5] for _, _, code in expected(c.marked("before"))} for c in CASES if c.folder.parent.name == stem
        ]
        if not any(rule.code in found for found in codes):
            flagless.append(stem)
        if set() not in codes:
            silent.append(stem)
    assert (flagless, silent) == ([], [])
