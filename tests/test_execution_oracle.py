"""Which paths are tried: what an option equals, what a path could have been given instead, and what that is worth."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from rebindlint.config import Config
from rebindlint.discover import discover
from rebindlint.execution.exploration import MAX_MISSES, Explorer
from rebindlint.execution.oracle import MEANT, Oracle
from rebindlint.execution.twice import Outcome, execute_twice
from rebindlint.index import build_index, find_hooks
from rebindlint.index.classes import FunctionInfo
from rebindlint.model import Protocol

KINDS = Path(__file__).parent / "kinds"


def test_an_option_equals_one_constant_and_what_it_was_compared_with_in_vain_is_remembered() -> None:
    oracle = Oracle({("==", "backend", "A"): 1}, 0)
    assert oracle.equal("backend", "A", "first", constant=True)
    assert not oracle.equal("backend", "B", "second", constant=True)
    assert [key for key, _ in oracle.asked] == [("==", "backend", "A")]
    assert ("==", "backend", "B") in oracle.consulted


def test_a_plan_that_means_a_constant_answers_every_comparison_with_it() -> None:
    oracle = Oracle({(MEANT, "backend", "C"): 1}, 1)
    assert [oracle.equal("backend", name, name, constant=True) for name in "ABCD"] == [False, False, True, False]
    assert oracle.equal("other", "A", "elsewhere", constant=True), "another option takes the default"


def test_a_goal_behind_another_constant_is_tried_with_that_constant() -> None:
    explorer = Explorer(20)
    plans = explorer.plans()
    plan, default = next(plans)
    oracle = Oracle(plan, default)
    oracle.ask(("?", "wide", 2), "before")
    oracle.plan[("==", "backend", "A")] = 1
    assert oracle.equal("backend", "A", "first", constant=True)
    assert not oracle.equal("backend", "C", "second", constant=True)
    oracle.goals[("==", "backend", "C")] = frozenset({1})
    explorer.record(oracle, default)
    tried = [plan for plan, _ in plans]
    assert {("?", "wide", 2): 0, (MEANT, "backend", "C"): 1} in tried, "what was asked before stays as it was"


def test_a_goal_that_was_reached_is_not_tried_again() -> None:
    explorer = Explorer(20)
    plans = explorer.plans()
    plan, default = next(plans)
    oracle = Oracle(plan, default)
    oracle.plan[("==", "backend", "A")] = 1
    oracle.equal("backend", "A", "first", constant=True)
    oracle.equal("backend", "C", "second", constant=True)
    oracle.goals[("==", "backend", "C")] = frozenset({1})
    explorer.covered = {1}
    explorer.record(oracle, default)
    assert not any((MEANT, "backend", "C") in plan for plan, _ in plans)


def first_run(text: str, tmp_path: Path, default: int, **plan: int) -> tuple[Outcome, Oracle]:
    """The first hook of a text, executed along the path that gives every question the same answer, but for what ``plan`` says of a strategy."""
    (tmp_path / "given.py").write_text(text, encoding="utf-8")
    config = Config(root=tmp_path, jobs=1)
    index = build_index(discover(["."], config, cwd=tmp_path).context, config)
    oracle = Oracle({("==", "self.strategy", f"lib.Strategy.{name}"): answer for name, answer in plan.items()}, default)
    return execute_twice(index, find_hooks(index)[0], oracle, Protocol.DIRECT), oracle


def test_what_a_remembered_function_decided_before_the_hook_has_a_goal(tmp_path: Path) -> None:
    text = (KINDS / "remembered_answer.py").read_text(encoding="utf-8")
    _, oracle = first_run(text, tmp_path, default=1)
    (key,) = [key for key, _ in oracle.loading if "gfx" in str(key)]
    assert oracle.goals.get(key), "its other answer leads to a statement that binds"


def test_a_check_that_refuses_hangs_on_what_was_asked_before_the_hook(tmp_path: Path) -> None:
    text = (KINDS / "option_asked_before_the_hook.py").read_text(encoding="utf-8")
    outcome, oracle = first_run(text, tmp_path, default=0, TENSOR=0)
    assert outcome.captured is None, "the first run raised"
    keys, goal = oracle.refusing
    assert ("==", "self.strategy", "lib.Strategy.BLOCK") in keys
    assert goal


@pytest.mark.parametrize("default", [0, 1])
def test_a_cast_that_gave_what_it_was_given_is_worth_the_other_answer(default: int, tmp_path: Path) -> None:
    text = (
        "import torch\n\n\nclass Method:\n    def process_weights_after_loading(self, layer):\n"
        "        layer.fused = layer.weight.float()\n\n    def apply(self, layer, x):\n        return layer.fused\n"
    )
    _, oracle = first_run(text, tmp_path, default)
    (key,) = [key for key, _ in oracle.asked if "float32" in str(key)]
    assert bool(oracle.goals.get(key)) is bool(default)


def test_a_goal_takes_no_more_than_its_share_of_the_tries() -> None:
    explorer = Explorer(60)
    plans = explorer.plans()
    for _ in range(24):
        plan, default = next(plans, (None, 0))
        if plan is None:
            break
        oracle = Oracle(plan, default)
        for asked in range(8):
            oracle.ask(("?", f"{asked}", 2), f"{asked}")
        oracle.failed = [(1, 1, ("?", f"{asked}", 2), frozenset({7})) for asked in range(8)]
        explorer.record(oracle, default)
    assert explorer._retries._tried_for[frozenset({7})] <= MAX_MISSES


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if x.wide:\n        return x.view(-1)\n    return torch.empty(1)", True),
        ("if x.wide:\n        return x\n    return x.t()", False),
        ("if x.wide:\n        return torch.ones(1)\n    return torch.zeros(1)", False),
        ("if x.wide:\n        return x.contiguous()\n    return None", False),
        ("if x.wide:\n        return x.size(0)\n    return x.data.to(y)", True),
    ],
)
def test_a_function_that_gives_its_argument_or_something_else(body: str, expected: bool, tmp_path: Path) -> None:
    (tmp_path / "given.py").write_text(f"import torch\n\n\ndef given(x, y):\n    {body}\n", encoding="utf-8")
    config = Config(root=tmp_path, jobs=1)
    index = build_index(discover(["."], config, cwd=tmp_path).context, config)
    module = index.module("given")
    assert module is not None
    node = next(node for node in module.tree.body if isinstance(node, ast.FunctionDef))
    info = index.definition(module, node)
    assert isinstance(info, FunctionInfo)
    assert info.gives_either is expected
