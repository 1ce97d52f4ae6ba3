"""The mutators: each injected hazard is one on real tensors, each twin is none, and the linter's verdict is read strictly."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.mutation import campaign as campaigns
from benchmarks.mutation.__main__ import main
from benchmarks.mutation.judge import Verdict, judged
from benchmarks.mutation.mutants import CELL, Mutant, Option, built, options
from benchmarks.mutation.overlay import hook_in, overlaid
from benchmarks.mutation.positions import positions, written_attributes
from benchmarks.mutation.reach import Reached, reached
from benchmarks.mutation.report import is_good, report
from benchmarks.mutation.rewrites import rewritten
from benchmarks.mutation.splice import MARK, Edit, cut, insert, marked_rows, spliced, statements
from benchmarks.mutation.subjects import Subject, candidates, findings, index_of, subject_of, weight_names
from rebindlint.index import Index
from rebindlint.model import RebindlintError

ENGINE = '''\
import torch
from torch import nn
from torch.nn import Parameter


def replace_parameter(layer, name, new, prefer_copy=False):
    old = getattr(layer, name, None)
    if prefer_copy and old is not None and old.shape == new.shape and old.dtype == new.dtype:
        old.data.copy_(new)
    else:
        setattr(layer, name, Parameter(new, requires_grad=False))


class Method:
    def __init__(self, doubled=True):
        self.doubled = doubled
        self.table = None

    def create_weights(self, layer):
        layer.register_parameter("weight", Parameter(torch.empty(4, 4), requires_grad=False))
        layer.register_parameter("scale", Parameter(torch.empty(4), requires_grad=False))

    def process_weights_after_loading(self, layer: nn.Module) -> None:
        """Doubles the scale."""
        layer.weight.dim()
        self.check(layer)
        self.each(layer, lambda part: part)

        def halve(part):
            return part * 0.5

        self.each(layer, halve)
        if self.doubled:
            replace_parameter(layer, "scale", torch.mul(layer.scale, 2), prefer_copy=True)
        if self.table is None:
            self.table = torch.cat([layer.weight, layer.weight])
        else:
            self.table.copy_(torch.cat([layer.weight, layer.weight]))

    def check(self, layer):
        assert layer.scale.dim() == 1

    def each(self, layer, function):
        return function(layer.scale)

    def apply(self, layer, x):
        return x @ layer.weight * layer.scale + self.table.sum()
'''


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "engine-1.0"
    (folder / "engine").mkdir(parents=True)
    (folder / "engine" / "__init__.py").write_text("")
    (folder / "engine" / "method.py").write_text(ENGINE)
    (folder / ".complete").touch()
    return folder


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants import the tree's replace helper."""
    monkeypatch.setitem(sys.modules, "engine", types.ModuleType("engine"))
    monkeypatch.setitem(sys.modules, "engine.method", types.ModuleType("engine.method"))


@pytest.fixture(scope="module")
def index(tree: Path) -> Index:
    return index_of(tree, "engine")


@pytest.fixture(scope="module")
def subject(index: Index) -> Subject:
    (hook,) = candidates(index)
    found = subject_of(index, "engine-1.0", hook, weight_names(index))
    assert found is not None
    return found


@pytest.fixture(scope="module")
def paths(index: Index, subject: Subject) -> list[Reached]:
    return reached(index, subject)


# ---- what there is to mutate


def test_a_hook_knows_its_objects_a_weight_and_who_reads_them(subject: Subject) -> None:
    assert [(o.name, o.is_module, o.reader.function.name) for o in subject.objects] == [
        ("self", False, "apply"),
        ("layer", True, "apply"),
    ]
    assert subject.weight == "layer.weight"
    assert subject.name == "engine-1.0/engine.method:Method.process_weights_after_loading"


def test_helpers_and_callbacks_are_reached_and_the_replace_helper_is_left_alone(paths: list[Reached]) -> None:
    assert [(at.place, at.name.partition(":")[2], dict(at.names)) for at in paths] == [
        ("hook", "Method.process_weights_after_loading", {"self": "self", "layer": "layer"}),
        ("callback", "Method.process_weights_after_loading.halve", {"self": "self", "layer": "layer"}),
        ("helper", "Method.check", {"self": "self", "layer": "layer"}),
        ("helper", "Method.each", {"self": "self", "layer": "layer"}),
    ]


def _positions(code: str, *objects: str) -> list[str]:
    import libcst as cst

    module = cst.parse_module(code)
    node = cst.ensure_type(module.body[0], cst.FunctionDef)
    return [p.name for p in positions(node, written_attributes(code), frozenset(objects))]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if self.wide:\n        a()", ["entry", "arm1", "end"]),
        ("if self.x is None:\n        a()", ["entry", "end"]),
        ('if not hasattr(o, "x"):\n        o.x = a()', ["entry", "end"]),
        ("if self.x:\n        a()\n    self.x = 1", ["entry", "end"]),
        ("if self.x:\n        return\n    self.x = 1", ["entry"]),
        ("if argument:\n        a()", ["entry", "end"]),
        ("if self.wide:\n        raise a", ["entry", "end"]),
        ("a()\n    return b", ["entry", "end"]),
        ("for name in names:\n        a()", ["entry", "arm1", "end"]),
    ],
)
def test_positions_are_those_that_run_in_both_runs(body: str, expected: list[str]) -> None:
    assert _positions(f"def f(self, argument):\n    {body}\n", "self") == expected


# ---- what the mutants do, on real tensors


def _run(text: str) -> Iterator[tuple[Any, Any]]:
    """The objects after the hook's first run, and again after other weights were loaded and it ran again."""
    module = sys.modules["engine.method"] = types.ModuleType("engine.method")
    exec(compile(text.replace(', device="cuda"', ""), "mutated", "exec"), module.__dict__)
    make: Any = module.__dict__["Method"]
    method, layer = make(), torch.nn.Module()
    method.create_weights(layer)
    for value in (1.0, 3.0):
        for name in ("weight", "scale"):
            layer.get_parameter(name).data.fill_(value)
        method.process_weights_after_loading(layer)
        yield method, layer


def _inside(value: Any) -> torch.Tensor:
    """The tensor in whatever holds it."""
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, list | tuple):
        return _inside(value[0])
    if isinstance(value, dict):
        return _inside(next(iter(value.values())))
    for name in ("inner", "holder", "args", "__self__"):
        if hasattr(value, name):
            return _inside(getattr(value, name))
    return _inside(value.__closure__[0].cell_contents)


def _cell(mutant: Mutant, method: Any, layer: Any) -> torch.Tensor:
    owner = method if mutant.where.startswith("self") else layer
    names = [name for name in (CELL, f"{CELL}_up", *sorted(mutant.cells)) if hasattr(owner, name)]
    return _inside(getattr(owner, names[0]))


def _verdict(mutant: Mutant) -> tuple[bool, list[float]]:
    """Whether the cell kept its memory, and its first element after each run."""
    seen = [
        (c.data_ptr(), float(c.flatten()[0]), c)
        for o in _run(mutant.texts["engine.method"])
        for c in [_cell(mutant, *o)]
    ]
    return seen[0][0] == seen[1][0], [seen[0][1], seen[1][1]]


def _every(index: Index, subject: Subject, paths: list[Reached], place: str) -> Iterator[tuple[Mutant, Mutant | None]]:
    """One mutant of each kind: operator, vehicle, holder, object."""
    seen = set()
    for option in options(index, subject, paths, place):
        key = (
            option.operator and option.operator.name,
            option.vehicle and option.vehicle.name,
            option.holder,
            option.target.name,
        )
        shared = key if option.vehicle is None else (option.vehicle.name, option.target.name)
        if key not in seen and shared not in seen:
            seen |= {key, shared}
            yield built(index, subject, _at_entry(option))


def _at_entry(option: Option) -> Option:
    return replace(option, position=option.at.positions[0])


@pytest.mark.parametrize("place", ["hook", "helper", "callback", "constructor"])
def test_a_mutant_is_a_hazard_and_its_twin_is_none(
    index: Index, subject: Subject, paths: list[Reached], place: str
) -> None:
    tried = 0
    for mutant, twin in _every(index, subject, paths, place):
        tried += 1
        kept, (first, second) = _verdict(mutant)
        if mutant.kind == "drop-refresh":
            assert first == second, mutant.id
            assert kept, mutant.id
        elif mutant.kind == "double-transform":
            assert kept, mutant.id
            assert first != second, mutant.id
        else:
            assert not kept, mutant.id
        if twin is not None:
            kept, (first, second) = _verdict(twin)
            assert kept, twin.id
            assert (first != second) == ("weight" in _injected(twin)), twin.id
    assert tried >= 15


def _injected(mutant: Mutant) -> str:
    text = mutant.texts["engine.method"]
    return "".join(line.partition("#")[0] for line in text.split("\n") if MARK in line and "copy" in line)


def test_own_writes_are_turned_into_hazards(index: Index, subject: Subject, paths: list[Reached]) -> None:
    found = {m.variant: m for seed in range(40) for m in rewritten(index, subject, paths, seed, 10)}
    assert set(found) >= {"replaced-setattr", "replaced-data", "argument", "always", "else-dropped", "transform-once"}
    for name, mutant in found.items():
        runs = list(_states(mutant))
        (cell,) = mutant.cells
        before, after = (run[cell] for run in runs)
        if name in ("else-dropped", "transform-once"):
            stale = before[1] == after[1] if name == "else-dropped" else after[1] == 3.0
            assert stale, mutant.id
        else:
            assert before[0] != after[0], mutant.id


def _states(mutant: Mutant) -> Iterator[dict[str, tuple[int, float, torch.Tensor]]]:
    for method, layer in _run(mutant.texts["engine.method"]):
        tensors = {"table": method.table, "scale": layer.scale}
        yield {n: (t.data_ptr(), float(t.flatten()[0]), t.detach()) for n, t in tensors.items()}


# ---- the verdict


def test_the_unmutated_hook_is_silent_and_a_workspace_is_found(
    index: Index, subject: Subject, paths: list[Reached]
) -> None:
    assert findings(index, subject.hook) == []
    option = next(o for o in options(index, subject, paths, "hook") if o.operator and o.operator.variant == "zeros")
    mutant, twin = built(index, subject, option)
    verdict = judged(index, mutant)
    assert (verdict.killed, verdict.code, verdict.kind, verdict.place) == (True, "RB101", "fresh-workspace", "hook")
    assert twin is not None
    assert judged(index, twin) == Verdict(twin.id, twin.kind, twin.variant, twin.place, subject.name)


@pytest.mark.parametrize("spoilt", [{"cells": frozenset({"another"})}, {"codes": frozenset({"RB301"})}, {"texts": {}}])
def test_a_finding_about_something_else_kills_nothing(
    index: Index, subject: Subject, paths: list[Reached], spoilt: dict[str, Any]
) -> None:
    option = next(o for o in options(index, subject, paths, "hook") if o.operator and o.operator.variant == "zeros")
    mutant = replace(built(index, subject, option)[0], **spoilt)
    assert not judged(index, mutant).killed


def test_an_unmarked_statement_kills_nothing(index: Index, subject: Subject, paths: list[Reached]) -> None:
    option = next(o for o in options(index, subject, paths, "hook") if o.operator and o.operator.variant == "zeros")
    mutant, _ = built(index, subject, option)
    unmarked = {name: text.replace(MARK, "") for name, text in mutant.texts.items()}
    verdict = judged(index, replace(mutant, texts=unmarked))
    assert not verdict.killed
    assert [said.split(" ")[1] for said in verdict.other] == ["RB101"]


def test_an_overlay_leaves_the_index_under_it_alone(index: Index, subject: Subject) -> None:
    before = index.module("engine.method")
    other = overlaid(index, {"engine.method": ENGINE.replace("self.check(layer)", "layer.fresh = torch.zeros(8)")})
    assert hook_in(other, subject.hook).function.node is not subject.hook.function.node
    assert index.module("engine.method") is before
    with pytest.raises(RebindlintError, match="is gone"):
        hook_in(overlaid(index, {"engine.method": "class Method:\n    pass\n"}), subject.hook)


# ---- splicing


def test_a_function_goes_back_where_it_was_cut_out(subject: Subject) -> None:
    text = subject.hook.function.module.text
    assert spliced(text, [Edit(subject.cut, (subject.cut.node,))]).rstrip() == text.rstrip()
    new = insert(subject.cut.node, subject.cut.node.body, 1, statements("a = 1\nb = 2"))
    changed = spliced(text, [Edit(subject.cut, (new,))])
    row = changed.split("\n").index("        a = 1  # <mutant>") + 1
    assert marked_rows(changed) == [(row, row), (row + 1, row + 1)]
    assert changed.replace("        a = 1  # <mutant>\n        b = 2  # <mutant>\n", "").rstrip() == text.rstrip()


def test_the_cut_of_a_decorated_function_holds_its_decorators(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "decorated.py").write_text("class A:\n    @staticmethod\n    def f(x):\n        return x\n")
    index = index_of(tmp_path, ".")
    module = index.module("decorated")
    assert module is not None
    own = cut(next(iter(index.classes_of(module))).methods["f"])
    assert (own.first, own.last, own.margin) == (2, 4, "    ")


# ---- the campaign


@pytest.fixture
def corpus(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REBINDLINT_CORPUS", str(tree.parent))
    monkeypatch.setattr(campaigns, "HOOKS", tmp_path / "hooks.json")
    monkeypatch.setattr("benchmarks.mutation.__main__.HOOKS", tmp_path / "hooks.json")
    return tmp_path


def test_two_campaigns_of_one_seed_are_the_same(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["engine-1.0", "--choose", "--jobs", "1"]) == 0
    assert json.loads((corpus / "hooks.json").read_text()) == {
        "engine-1.0": ["engine.method:Method.process_weights_after_loading"]
    }
    results = [campaigns.campaign(["engine-1.0"], seed=7, jobs=jobs) for jobs in (1, 2)]
    assert results[0] == results[1]
    assert results[0] != campaigns.campaign(["engine-1.0"], seed=8, jobs=1)
    assert len({v.id for v in results[0].verdicts}) == len(results[0].verdicts) >= 13
    assert (results[0].noisy, results[0].missing) == ((), ())
    main(["engine-1.0", "--seed", "7", "--jobs", "1", "--json", str(corpus / "verdicts.json")])
    printed = capsys.readouterr().out
    assert f"{len(results[0].verdicts)} mutants of 1 clean hooks" in printed
    assert len(json.loads((corpus / "verdicts.json").read_text())["verdicts"]) == len(results[0].verdicts)


def test_a_hook_that_is_gone_and_a_release_without_hooks_are_said(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["engine-1.0"]) == 2
    assert "hooks.json" in capsys.readouterr().err
    (corpus / "hooks.json").write_text(json.dumps({"engine-1.0": ["engine.method:Method.gone"]}))
    result = campaigns.campaign(["engine-1.0"], seed=0, jobs=1)
    assert result.missing == ("engine-1.0/engine.method:Method.gone",)
    assert not is_good(result)
    assert main(["engine-1.0", "--only", "nothing of the kind", "--jobs", "1"]) == 1


def _result(killed: int, survivors: int, **more: Any) -> campaigns.Result:
    verdicts = [Verdict(f"k{i}", "kind", "v", "hook", "r/h", "error", "RB101") for i in range(killed)]
    verdicts += [Verdict(f"s{i}", "kind", "v", "hook", "r/h") for i in range(survivors)]
    return campaigns.Result(("r/h",), tuple(verdicts), **{"twins": (), "noisy": (), **more})


def test_a_result_is_good_when_enough_die_the_rest_is_explained_and_nothing_else_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reasons: Callable[[], dict[str, str]] = lambda: {"s0": "why", "s1": "why"}  # noqa: E731
    monkeypatch.setattr("benchmarks.mutation.report._reasons", reasons)
    loud = Verdict("t", "kind", "v", "hook", "r/h", other=("error RB101 layer.mutant_cell a.py:1:1",))
    elsewhere = Verdict("t", "kind", "v", "hook", "r/h", other=("error RB101 layer.weight a.py:1:1",))
    assert is_good(_result(98, 2))
    assert is_good(_result(98, 2, twins=(elsewhere,)))
    assert not is_good(_result(96, 4))
    assert not is_good(_result(97, 3))  # s2 is not explained
    assert not is_good(_result(100, 0, noisy=("r/h: error",)))
    assert not is_good(_result(100, 0, twins=(loud,)))
    text = report(_result(97, 3, noisy=("r/h: error RB101 w",), twins=(loud,)))
    assert "100 mutants of 1 clean hooks, 97 killed (97 as errors): 97.0%" in text
    assert "NOT EXPLAINED" in text
    assert text.count("why") == 2
