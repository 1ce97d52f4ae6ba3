from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from rebindlint.runtime.difference import Difference, difference
from rebindlint.runtime.snapshot import Layout, Snapshot, take_snapshot


def snap(root: object) -> Snapshot:
    return take_snapshot({"model": root}, values=True)[0]


def change(root: Any, action: Callable[[Any], object]) -> Difference:
    before = snap(root)
    with torch.no_grad():
        action(root)
    return difference(before, snap(root))


def engine() -> Any:
    embed = torch.arange(8.0)
    return types.SimpleNamespace(w=torch.zeros(4), embed=embed, head=embed, view=embed[2:], pool=None)


def test_writing_in_place_moves_nothing() -> None:
    changed = change(engine(), lambda e: e.w.copy_(torch.ones(4)))
    assert changed == Difference((), (), (), ())


def test_a_new_object_on_the_same_storage_is_no_move() -> None:
    changed = change(engine(), lambda e: setattr(e, "w", nn.Parameter(e.w)))
    assert changed.moved == ()


def test_a_rebound_tensor_is_a_move_and_its_old_storage_is_freed() -> None:
    (move,) = change(engine(), lambda e: setattr(e, "w", torch.ones(4))).moved
    assert (move.before.path, move.freed, move.names) == ("model.w", True, ())
    assert move.new is not None
    assert move.after is not None
    assert move.before.digest != move.after.digest


def test_an_old_storage_that_somebody_keeps_is_not_freed() -> None:
    root = engine()
    kept = root.w
    (move,) = change(root, lambda e: setattr(e, "w", torch.ones(4))).moved
    assert not move.freed
    assert kept.numel() == 4


def test_a_storage_under_another_name_is_named() -> None:
    def swap(e: Any) -> None:
        e.old, e.w = e.w, torch.ones(4)

    (move,) = change(engine(), swap).moved
    assert move.names == ("model.old",)


def test_a_released_tensor_moves_nowhere() -> None:
    (move,) = change(engine(), lambda e: setattr(e, "w", None)).moved
    assert (move.after, move.new, move.freed) == (None, None, True)


def test_an_address_that_comes_back_is_still_a_move() -> None:
    def again(e: Any) -> None:
        for _ in range(50):
            e.w = None
            e.w = torch.zeros(4)

    assert len(change(engine(), again).moved) == 1


def test_a_broken_alias_names_who_stayed_and_who_moved() -> None:
    (split,) = change(engine(), lambda e: setattr(e, "head", torch.ones(8))).split
    assert [cell.path for cell in split.stayed] == ["model.embed", "model.view"]
    assert [move.before.path for move in split.moved] == ["model.head"]


def test_aliases_that_move_together_stay_aliases() -> None:
    def both(e: Any) -> None:
        e.embed = e.head = torch.ones(8)
        e.view = e.embed[2:]

    changed = change(engine(), both)
    assert len(changed.moved) == 3
    assert changed.split == ()


def test_slices_of_one_pool_are_no_aliases() -> None:
    pool = torch.zeros(8)
    root = types.SimpleNamespace(a=pool[:4], b=pool[4:])
    changed = change(root, lambda e: setattr(e, "a", torch.ones(4)))
    assert len(changed.moved) == 1
    assert changed.split == ()


def test_another_layout_on_the_same_storage_is_told_apart() -> None:
    root = types.SimpleNamespace(w=torch.arange(6.0).reshape(2, 3))
    changed = change(root, lambda e: setattr(e, "w", e.w.t()))
    ((before, after),) = changed.relaid
    assert (before.layout.shape, after.layout.shape) == ((2, 3), (3, 2))
    assert changed.moved == ()


def test_memory_that_resize_moves_is_reallocated() -> None:
    root = engine()
    changed = change(root, lambda e: e.w.untyped_storage().resize_(1 << 20))
    ((old, new),) = changed.reallocated
    assert (old.nbytes, new.nbytes) == (16, 1 << 20)
    assert old.number == new.number


def test_a_cell_keeps_its_identity_when_a_shorter_path_appears() -> None:
    holder = types.SimpleNamespace(w=torch.zeros(2))
    root = types.SimpleNamespace(deep=[[holder]])
    changed = change(root, lambda e: setattr(e, "short", holder))
    assert changed.moved == ()


def test_a_snapshot_keeps_no_tensor_alive() -> None:
    root = engine()
    before = snap(root)
    number = root.w.untyped_storage()._cdata
    root.w = None
    assert before.weak.freed(number)


@pytest.mark.parametrize(
    ("tensor", "span"),
    [
        (torch.zeros(4), (0, 16)),
        (torch.zeros(4)[1:3], (4, 12)),
        (torch.zeros(2, 3).t(), (0, 24)),
        (torch.zeros(2, 3)[:, 0], (0, 16)),
        (torch.zeros(4)[2:2], (8, 8)),
        (torch.tensor(1.0), (0, 4)),
        (torch.zeros(1).expand(5), (0, 4)),
    ],
    ids=["whole", "slice", "transposed", "column", "empty", "scalar", "expanded"],
)
def test_a_layout_knows_the_bytes_it_spans(tensor: torch.Tensor, span: tuple[int, int]) -> None:
    assert Layout.of(tensor).span == span
