"""The cases of ``tests/fixtures/<rule>/<case>/``: what is flagged, what the fix gives, and what both do to real tensors.

A case is a folder with

- ``before.py``, or a folder ``before/`` for code of several files; it is linted as a project of its own, ``before.py`` under the name
  ``hooks.py``. A line to be flagged ends in ``# RB101`` (``# RB101 RB103`` for two findings); a finding on a statement of several lines is marked
  on the first. The markers are taken out before linting, so that they neither keep a fix from a line nor turn up in what it gives.
- ``after.py`` (``after/``), exactly when something is fixed; the lines that are still flagged then are marked in it. Fixes that a person has to look
  at are applied only in cases with ``unsafe`` in their name, where the safe ones alone must change nothing. A case without ``after`` must not be
  changed by any fix, safe or not. ``pytest --update`` writes it.
- ``known_miss.txt`` when the engine does not get there yet: its text is the reason why the case is expected to fail.
- ``case.py``, when the case can be executed, with four functions and, for several files, the name of the module that they are given::

      MODULE = "vllm.attention"              # default: "hooks"
      def build(module) -> object: ...       # a fresh object, nothing loaded yet
      def load(target, generation) -> None: ...   # writes the weights of that generation where direct reloading writes them
      def hook(target) -> None: ...
      def cells(target) -> dict[str, torch.Tensor]: ...   # what a graph would capture, by name

  A flagged ``before`` must show the hazard on real tensors: after the second load and run a captured cell has another address, is gone, or does not hold
  what a fresh object holds after one. A silent ``before`` and every ``after`` must show none, and the first runs of both leave the same behind.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from rebindlint.config import Config
from rebindlint.model import Severity
from rebindlint.pipeline import Outcome, Request, run

if TYPE_CHECKING:
    import torch

FIXTURES = Path(__file__).parent / "fixtures"
_MARKER = re.compile(rb"[ \t]+# (RB\d{3}(?: RB\d{3})*)(?=\r?\n|\r?\Z)")
_HOOKS = "hooks.py"  # what before.py and after.py are called while they are linted

Texts = dict[str, bytes]
Flagged = list[tuple[str, int, str]]


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

    def marked(self, side: str) -> Texts:
        """The files of ``before`` or ``after`` as they are kept, with their markers."""
        single = self.folder / f"{side}.py"
        if single.exists():
            return {_HOOKS: single.read_bytes()}
        root = self.folder / side
        return {
            p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*.py")) if "__pycache__" not in p.parts
        }

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
            found += [(name, row, code) for code in match.group(1).decode().split()]
    return sorted(found)


def write(texts: Texts, project: Path) -> Path:
    for name, raw in texts.items():
        file = project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(raw)
    return project


def read(project: Path) -> Texts:
    return {p.relative_to(project).as_posix(): p.read_bytes() for p in sorted(project.rglob("*.py"))}


def lint(project: Path, *, fix: bool = False, unsafe: bool = False) -> Outcome:
    outcome = run(Request((".",), Config(root=project, jobs=1), fix=fix, unsafe=unsafe, cache=False, cwd=project))
    assert outcome.failures == ()
    return outcome


def flagged(outcome: Outcome) -> Flagged:
    return sorted((d.place.filename, d.place.start.row, d.code) for d in outcome.diagnostics if d.severity is not Severity.NOTE)


def update(case: Case, texts: Texts, outcome: Outcome) -> None:
    """Writes ``after``, with a marker on each line that is still flagged."""
    if texts == plain(case.marked("before")):
        (case.folder / "after.py").unlink(missing_ok=True)
        shutil.rmtree(case.folder / "after", ignore_errors=True)
        return
    rows: dict[tuple[str, int], list[str]] = {}
    for name, row, code in flagged(outcome):
        rows.setdefault((name, row), []).append(code)
    for name, raw in texts.items():
        lines = raw.split(b"\n")
        for number, line in enumerate(lines, 1):
            if codes := rows.get((name, number)):
                body, cr = (line[:-1], b"\r") if line.endswith(b"\r") else (line, b"")
                lines[number - 1] = body + f"  # {' '.join(codes)}".encode() + cr
        single = (case.folder / "before.py").exists()
        write({"after.py" if single else f"after/{name}": b"\n".join(lines)}, case.folder)


@pytest.mark.parametrize("case", [case.param() for case in CASES])
def test_marked_lines_are_flagged_and_fixed(case: Case, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    before = case.marked("before")
    project = write(plain(before), tmp_path / "project")
    assert flagged(lint(project)) == expected(before)
    if case.unsafe:
        assert lint(project, fix=True).changed == (), "the safe fixes alone must change nothing"
    outcome = lint(project, fix=True, unsafe=case.unsafe or not case.has_after)
    result = read(project)
    if request.config.getoption("--update"):
        update(case, result, outcome)
    after = case.marked("after") if case.has_after else before
    assert {n: raw.decode("latin-1") for n, raw in result.items()} == {n: raw.decode("latin-1") for n, raw in plain(after).items()}
    assert flagged(outcome) == expected(after)
    assert case.has_after == (result != plain(before))
    again = lint(project, fix=True, unsafe=case.unsafe or not case.has_after)
    assert again.changed == ()
    assert flagged(again) == expected(after)


# ---- the same on real tensors


@dataclass(frozen=True, slots=True)
class Held:
    """What a graph has of a tensor, and what it found there."""

    tensor: torch.Tensor
    address: int
    values: torch.Tensor
    layout: tuple[object, ...]


@contextmanager
def imported(project: Path, name: str) -> Iterator[ModuleType]:
    """The module, imported anew from that folder; afterwards nothing of it is left behind."""
    tops = {path.stem for path in project.iterdir()}
    hidden = {n: m for n, m in sys.modules.items() if n.split(".")[0] in tops}
    for module in hidden:
        del sys.modules[module]
    sys.path.insert(0, str(project))
    importlib.invalidate_caches()
    try:
        yield importlib.import_module(name)
    finally:
        sys.path.remove(str(project))
        for module in [n for n in sys.modules if n.split(".")[0] in tops]:
            del sys.modules[module]
        sys.modules.update(hidden)


def script(case: Case) -> Any:
    spec = importlib.util.spec_from_file_location("fixture_case", case.folder / "case.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def held(cells: dict[str, torch.Tensor]) -> dict[str, Held]:
    return {
        name: Held(t, t.data_ptr(), t.detach().clone(), (tuple(t.shape), t.stride(), t.dtype)) for name, t in cells.items()
    }


@dataclass(frozen=True, slots=True)
class Runs:
    first: dict[str, Held]
    hazards: dict[str, str]


def execute(case: Case, project: Path) -> Runs:
    """Load, run, capture, load, run, check; and beside it a fresh object that only ever saw the second weights."""
    about = script(case)
    name = getattr(about, "MODULE", "hooks")
    with imported(project, name) as module:
        target = about.build(module)
        about.load(target, 0)
        about.hook(target)
        first = held(about.cells(target))
        about.load(target, 1)
        about.hook(target)
        second = held(about.cells(target))
        captured = {n: (h.tensor.detach().clone(), h.address) for n, h in first.items()}
    with imported(project, name) as module:
        fresh = about.build(module)
        about.load(fresh, 1)
        about.hook(fresh)
        wanted = held(about.cells(fresh))
    assert first, "a case that runs must have cells"
    hazards = {}
    for cell, (values, address) in captured.items():
        if cell not in second:
            hazards[cell] = "gone"
        elif second[cell].address != address:
            hazards[cell] = "other address"
        elif not values.equal(wanted[cell].values):
            hazards[cell] = "stale values"
    return Runs(first, hazards)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES if case.can_run])
def test_real_tensors_agree(case: Case, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    marked = case.marked("before")
    before = execute(case, write(plain(marked), tmp_path / "before"))
    assert bool(before.hazards) == bool(expected(marked)), before.hazards
    if not case.has_after:
        return
    after = execute(case, write(plain(case.marked("after")), tmp_path / "after"))
    assert bool(after.hazards) == bool(expected(case.marked("after"))), after.hazards
    assert before.first.keys() == after.first.keys()
    for name, old in before.first.items():
        assert old.layout == after.first[name].layout, name
        assert old.values.equal(after.first[name].values), name


def test_every_rule_of_the_engine_has_a_flagged_and_a_silent_case() -> None:
    from rebindlint import registry

    for rule in registry.rules():
        if not _is_about_facts(rule):
            continue
        stem = type(rule).__module__.rpartition(".")[2]
        codes = [{code for _, _, code in expected(case.marked("before"))} for case in CASES if case.folder.parent.name == stem]
        assert any(rule.code in found for found in codes), f"{stem}: no flagged case"
        assert set() in codes, f"{stem}: no silent case"


def _is_about_facts(rule: Any) -> bool:
    """Rules about files and comments own no facts; their tests are elsewhere."""
    return rule.code >= "RB1"
