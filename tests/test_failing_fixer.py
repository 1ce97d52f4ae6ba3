"""A fixer that raises takes away its own fix and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import libcst as cst
import pytest

from rebindlint import registry
from rebindlint.config import Config
from rebindlint.model import Diagnostic, Rebinding, Severity
from rebindlint.pipeline import Outcome, Request, run
from rebindlint.plugin import FixContext, Fixer

HOOKS = """\
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(4, 4))
        self.slots = {}

    def process_weights_after_loading(self):
        self.first = self.weight.t().contiguous()
        self.second = self.weight.t().contiguous()
        self.slots["a"] = self.weight.t().contiguous()

    def forward(self, x):
        return x @ self.first @ self.second @ self.slots["a"]
"""


class Failing(Fixer):
    code = "RB101"

    def fix(
        self, statement: cst.SimpleStatementLine | cst.BaseCompoundStatement, fact: Rebinding, context: FixContext
    ) -> None:
        raise IndexError("no such\nargument")


@pytest.fixture
def lint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    fixers = {**registry.fixers(), "RB101": Failing()}
    monkeypatch.setattr(registry, "fixers", lambda: fixers)
    (tmp_path / "hooks.py").write_text(HOOKS)

    def linted(*, fix: bool = False) -> Outcome:
        return run(Request(("hooks.py",), Config(root=tmp_path, jobs=1), fix=fix, cache=False, cwd=tmp_path))

    return linted


def of_code(outcome: Outcome, code: str) -> list[Diagnostic]:
    return [d for d in outcome.diagnostics if d.code == code and d.severity is not Severity.NOTE]


def test_its_findings_stay_without_a_fix_and_one_note_says_why(lint: Callable[..., Outcome]) -> None:
    outcome = lint()
    assert [(d.attribute, d.fix) for d in of_code(outcome, "RB101")] == [("self.first", None), ("self.second", None)]
    (note,) = [d for d in outcome.diagnostics if d.severity is Severity.NOTE]
    assert note.message == "the fixer of RB101 failed on this statement and on 1 other: IndexError: no such argument"
    assert (note.code, note.place.start.row) == ("RB101", 12)


def test_the_other_fixers_go_on(lint: Callable[..., Outcome], tmp_path: Path) -> None:
    assert [d.fix is not None for d in of_code(lint(), "RB105")] == [True]
    outcome = lint(fix=True)
    assert [d.code for d in outcome.fixed] == ["RB105"]
    assert outcome.failures == ()
    changed = (tmp_path / "hooks.py").read_text()
    assert "self.first = self.weight.t().contiguous()" in changed
    assert 'self.slots["a"] = self.weight.t().contiguous()' not in changed
