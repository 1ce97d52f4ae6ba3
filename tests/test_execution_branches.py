"""Branches, loops and other control flow: what the state decides, and what configuration decides the same way twice."""

from __future__ import annotations

import pytest
from executed import brief, executed, facts, in_method, in_module

REBOUND = {"address attribute layer.w"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # decided by the state: the second run takes the other arm
        ("if not hasattr(layer, 'w'):\n    layer.w = layer.weight * 2\nelse:\n    layer.w.copy_(layer.weight * 2)", set()),
        ("if getattr(layer, 'w', None) is None:\n    layer.w = layer.weight * 2\nelse:\n    layer.w.copy_(layer.weight * 2)", set()),
        ("if hasattr(layer, 'w'):\n    layer.w.copy_(layer.weight * 2)\n    return\nlayer.w = layer.weight * 2", set()),
        # decided by configuration: the same answer in both runs
        ("if layer.config.fast:\n    layer.w = layer.weight * 2", REBOUND),
        ("if not layer.config.fast:\n    layer.w = layer.weight * 2", REBOUND),
        ("if layer.config.kind == 'a':\n    layer.w = layer.weight * 2\nelif layer.config.kind == 'b':\n    layer.w = layer.weight + 1", REBOUND),
        ("if layer.config.fast and layer.config.large:\n    layer.w = layer.weight * 2", REBOUND),
        ("if layer.config.fast or layer.config.large:\n    return\nlayer.w = layer.weight * 2", REBOUND),
        ("layer.w = layer.weight * 2 if layer.config.fast else layer.weight.clone()", REBOUND),
        ("if layer.config.fast:\n    new = layer.weight * 2\nif layer.config.fast:\n    layer.w = new", REBOUND),
        ("if layer.config.fast:\n    if not layer.config.fast:\n        layer.w = layer.weight * 2", set()),
        # constants
        ("if False:\n    layer.w = layer.weight * 2", set()),
        ("flag = True\nif not flag:\n    layer.w = layer.weight * 2", set()),
        # early ends
        ("return\nlayer.w = layer.weight * 2", set()),
        ("raise NotImplementedError\nlayer.w = layer.weight * 2", set()),
    ],
)  # fmt: skip
def test_conditions(body: str, expected: set[str]) -> None:
    assert brief(facts(hooks=in_method(body))) == expected


def test_both_arms_are_taken() -> None:
    body = """
    if layer.config.fast:
        layer.w = layer.weight * 2
    else:
        layer.v = layer.weight + 1
    """
    found = facts(hooks=in_method(body, reads="layer.w, layer.v"))
    assert brief(found) == {"address attribute layer.w", "address attribute layer.v"}


def test_an_arm_behind_many_others_is_taken() -> None:
    arms = "\n".join(f"if layer.config.flag{i}:\n    layer.note{i} = {i}" for i in range(12))
    assert brief(facts(hooks=in_method(arms + "\nif layer.config.last:\n    layer.w = layer.weight * 2"))) == REBOUND


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for name in ('w', 'v'):\n    setattr(layer, name, layer.weight * 2)", {"w", "v"}),
        ("for name in ['w']:\n    setattr(layer, f'{name}_packed', layer.weight * 2)", {"w_packed"}),
        ("for i, name in enumerate(('w', 'v')):\n    setattr(layer, f'{name}{i}', layer.weight * 2)", {"w0", "v1"}),
        ("for a, b in (('w', 1), ('v', 2)):\n    setattr(layer, a, layer.weight * b)", {"w", "v"}),
        ("for a, b in zip(('w', 'v'), (1, 2)):\n    setattr(layer, a, layer.weight * b)", {"w", "v"}),
        ("for a in {'w': 1, 'v': 2}:\n    setattr(layer, a, layer.weight * 2)", {"w", "v"}),
        ("for a, b in {'w': 1, 'v': 2}.items():\n    setattr(layer, a, layer.weight * b)", {"w", "v"}),
        ("for i in range(2):\n    setattr(layer, f'w{i}', layer.weight * 2)", {"w0", "w1"}),
        ("for name in ('w', 'v'):\n    if name == 'w':\n        continue\n    setattr(layer, name, layer.weight * 2)", {"v"}),
        ("for name in ('w', 'v'):\n    setattr(layer, name, layer.weight * 2)\n    break", {"w"}),
        ("for name in ('x',):\n    pass\nelse:\n    layer.w = layer.weight * 2", {"w"}),
        ("for name in NAMES:\n    setattr(layer, name, layer.weight * 2)", {"w", "v"}),
        ("for item in layer.config.items:\n    layer.w = layer.weight * 2", {"w"}),
        ("while layer.config.more:\n    layer.w = layer.weight * 2", {"w"}),
        ("[setattr(layer, name, layer.weight * 2) for name in ('w', 'v')]", {"w", "v"}),
        ("match layer.config.kind:\n    case 'a':\n        layer.w = layer.weight * 2\n    case _:\n        layer.v = layer.weight * 2", {"w", "v"}),
        ("match 'b':\n    case 'a':\n        layer.w = layer.weight * 2\n    case 'b' | 'c':\n        layer.v = layer.weight * 2", {"v"}),
        ("with torch.no_grad():\n    layer.w = layer.weight * 2", {"w"}),
        ("with layer.lock as held, torch.no_grad():\n    layer.w = layer.weight * 2", {"w"}),
        ("try:\n    layer.w = layer.weight * 2\nfinally:\n    layer.v = layer.weight * 2", {"w", "v"}),
        ("try:\n    raise ValueError\nexcept ValueError:\n    layer.w = layer.weight * 2", {"w"}),
        ("try:\n    import fast\nexcept ImportError:\n    layer.w = layer.weight * 2\nelse:\n    layer.v = layer.weight + 1", {"w", "v"}),
    ],
)  # fmt: skip
def test_loops_and_blocks(body: str, expected: set[str]) -> None:
    reads = "[layer.w, layer.v, layer.w_packed, layer.w0, layer.w1, layer.v1]"
    found = facts(hooks=in_method(body, top="NAMES = ('w', 'v')\n", reads=reads))
    assert {f.cell.name for f in found} == expected
    assert {f.hazard for f in found} == {"address"}


def test_a_second_run_that_is_refused_gives_nothing() -> None:
    body = """
    if hasattr(layer, "done"):
        raise RuntimeError("weights were processed already")
    layer.done = True
    layer.w = layer.weight * 2
    """
    assert facts(hooks=in_method(body)) == []


@pytest.mark.parametrize(
    "guard",
    [
        "if layer.config.unsupported:\n    raise ValueError('no')",
        "if layer.config.supported:\n    pass\nelse:\n    raise ValueError('no')",
        "if layer.weight.dtype != torch.float16:\n    raise ValueError('no')",
        "assert layer.weight.dtype == torch.float16",
        "assert layer.config.supported, 'no'",
        "if layer.config.kind == 'a':\n    pass\nelif layer.config.kind == 'b':\n    raise ValueError('no')",
    ],
)
def test_a_guard_that_raises_does_not_hide_the_rest(guard: str) -> None:
    assert brief(facts(hooks=in_method(f"{guard}\nlayer.w = layer.weight * 2"))) == REBOUND


def test_a_guard_that_skips_the_refresh_is_named() -> None:
    body = """
    if not hasattr(layer, "w"):
        layer.w = layer.weight * 2
    """
    text = in_method(body)
    (found,) = facts(hooks=text)
    assert brief([found]) == {"freshness none layer.w"}
    row = next(n for n, line in enumerate(text.splitlines(), 1) if "if not hasattr" in line)
    assert found.guarded is not None
    assert (found.guarded.start.row, found.statement.start.row) == (row, row)
    assert found.weight_dependent
    assert "binds `layer.w` in the first run only" in found.chain[-1].text


def test_a_flag_set_by_the_first_run_is_a_guard() -> None:
    body = """
    if self.done:
        return
    self.done = True
    self.w = self.weight * 2
    """
    (found,) = facts(hooks=in_module(body, init="self.done = False\nself.w = None"))
    assert brief([found]) == {"freshness none self.w"}
    assert found.guarded is not None


def test_a_guard_over_contents_that_no_weight_decides_is_right() -> None:
    body = """
    if not hasattr(layer, "w"):
        layer.w = torch.zeros(16, dtype=torch.int32)
    """
    assert facts(hooks=in_method(body)) == []


# ---- budget


def notes(source: str) -> list[str]:
    return [note.code for note in executed(hooks=source).notes]


@pytest.mark.parametrize(
    "body",
    [
        "self.process_weights_after_loading(layer)",
        "descend(layer, 0)",
        "for i in range(300):\n    for j in range(300):\n        for k in range(300):\n            count = i + j + k",
        "while True:\n    layer.count = 1",
        "nested = lambda f: f(f)\nnested(nested)",
    ],
    ids=["calls itself", "recursion", "huge loop", "endless loop", "fixed point"],
)
def test_what_does_not_end_by_itself_is_left_and_the_rest_is_judged(body: str) -> None:
    top = "def descend(layer, n):\n    layer.n = n\n    return descend(layer, n + 1)\n"
    result = executed(hooks=in_method(f"{body}\nlayer.w = layer.weight * 2", top=top))
    assert brief(result.facts) == REBOUND


def test_no_path_through_a_hook_is_noted_at_the_hook() -> None:
    text = in_method("if layer.config.a:\n    layer.w = layer.weight * 2\nraise ValueError('never')")
    (note,) = executed(hooks=text).notes
    assert (note.code, note.severity) == ("RB003", "note")
    row = next(n for n, line in enumerate(text.splitlines(), 1) if "def process_weights" in line)
    assert note.place.start.row == row
    assert "`Method.process_weights_after_loading`" in note.message


def test_too_many_paths_are_noted() -> None:
    arms = "\n".join(
        f"{'el' if i else ''}if layer.config.kind == {i}:\n    layer.w{i} = layer.weight * {i + 2}" for i in range(80)
    )
    assert notes(in_method(arms)) == ["RB003"]


def test_a_hook_that_is_followed_to_its_end_has_no_note() -> None:
    assert notes(in_method("layer.w = layer.weight * 2")) == []
