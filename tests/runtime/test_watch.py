from __future__ import annotations

import dataclasses
import itertools
import threading
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from rebindlint.runtime.guard import Guard
from rebindlint.runtime.sites import resolve
from rebindlint.runtime.watch import Watch

from .reload_models import RebindingLayer, inputs, load, row_of


class Plain:
    def __init__(self) -> None:
        self.w = torch.zeros(2)


class Child(Plain):
    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


class Slotted:
    __slots__ = ("w",)

    w: torch.Tensor


@dataclasses.dataclass(frozen=True)
class Frozen:
    w: torch.Tensor


class Guarded(type):
    def __setattr__(cls, name: str, value: object) -> None:
        raise TypeError("this class may not be changed")


class Locked(metaclass=Guarded):
    pass


class Engine(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.p = nn.Parameter(torch.zeros(2), requires_grad=False)
        self.register_buffer("b", torch.zeros(2))
        self.plain = torch.zeros(2)
        self.held = Plain()
        self.slotted = Slotted()


CLASSES = (Plain, Child, Slotted, Frozen, Locked)
PATCHABLE = (nn.Module, nn.Linear, torch.Tensor, nn.Parameter, *CLASSES, Engine)


def fingerprint() -> list[tuple[str, str, int]]:
    """Every attribute of everything that could be patched, in order, by identity."""
    found = [(c.__qualname__, name, id(value)) for c in PATCHABLE for name, value in vars(c).items()]
    return [*found, ("torch.utils", "swap_tensors", id(torch.utils.swap_tensors))]


def assign_data(e: Engine) -> None:
    e.p.data = torch.ones(2)  # data


def assign_parameter(e: Engine) -> None:
    e.p = nn.Parameter(torch.ones(2), requires_grad=False)  # parameter


def assign_plain(e: Engine) -> None:
    e.plain = torch.ones(2)  # plain


def set_attribute(e: Engine) -> None:
    setattr(e, "plain", torch.ones(2))  # noqa: B010 # setattr


def register(e: Engine) -> None:
    e.register_buffer("b", torch.ones(2))  # buffer


def register_new_parameter(e: Engine) -> None:
    e.register_parameter("p", nn.Parameter(torch.ones(2), requires_grad=False))  # register


def move_storage(e: Engine) -> None:
    e.p.set_(torch.ones(2))  # type: ignore[call-overload] # set_


def swap(e: Engine) -> None:
    swap_tensors: Any = torch.utils.swap_tensors
    swap_tensors(e.p, nn.Parameter(torch.ones(2), requires_grad=False))  # swap


def convert(e: Engine) -> None:
    e.double()  # convert


def assign_held(e: Engine) -> None:
    e.held.w = torch.ones(2)  # held


def assign_slot(e: Engine) -> None:
    e.slotted.w = torch.ones(2)  # slot


def rebuild(e: Engine) -> None:
    e.held = Plain()  # rebuild


def release(e: Engine) -> None:
    del e.plain  # release


def forget(e: Engine) -> None:
    e.plain = None  # type: ignore[assignment] # forget


@pytest.mark.parametrize(
    ("action", "kind", "key", "marker"),
    [
        (assign_data, "data", "data", "data"),
        (assign_parameter, "setattr", "p", "parameter"),
        (assign_plain, "setattr", "plain", "plain"),
        (set_attribute, "setattr", "plain", "setattr"),
        (register, "register_buffer", "b", "buffer"),
        (register_new_parameter, "register_parameter", "p", "register"),
        (move_storage, "set_", "data", "set_"),
        (swap, "swap_tensors", "data", "swap"),
        (convert, "data", "data", "convert"),
        (assign_held, "setattr", "w", "held"),
        (assign_slot, "setattr", "w", "slot"),
        (rebuild, "setattr", "held", "rebuild"),
        (release, "delattr", "plain", "release"),
        (forget, "setattr", "plain", "forget"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_whoever_rebinds_is_seen_with_file_and_line(
    action: Callable[[Engine], None], kind: str, key: str, marker: str
) -> None:
    engine = Engine()
    with Watch(CLASSES) as watch:
        action(engine)
    events = [event for event in watch.events if (event.kind, event.key) == (kind, key)]
    assert events
    site = resolve(events[0].chain[0])
    assert (site.row, site.function) == (row_of(marker, __file__), action.__name__)
    assert site.filename.endswith("test_watch.py")
    assert watch.lost == 0


def test_an_event_names_the_new_storage_and_keeps_no_tensor() -> None:
    engine = Engine()
    with Watch() as watch:
        engine.plain = torch.ones(2)
    (event,) = watch.events
    assert event.number == engine.plain.untyped_storage()._cdata
    assert event.owner_id == id(engine)
    assert not any(isinstance(value, torch.Tensor) for value in event)


def test_the_chain_ends_where_the_reload_was_entered() -> None:
    engine = Engine()

    def hook() -> None:
        assign_plain(engine)

    with Watch() as watch:
        hook()
    functions = [resolve(raw).function for raw in watch.events[0].chain]
    assert functions == [
        "assign_plain",
        "test_the_chain_ends_where_the_reload_was_entered.<locals>.hook",
        "test_the_chain_ends_where_the_reload_was_entered",
    ]


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_stays_patched(fails: bool) -> None:
    engine, before = Engine(), fingerprint()

    def reload() -> None:
        assert fingerprint() != before
        for action in (assign_data, assign_plain, assign_held, convert, rebuild):
            action(engine)
        if fails:
            raise KeyError("the host's own")

    if fails:
        with pytest.raises(KeyError, match="the host's own"), Watch(CLASSES):
            reload()
    else:
        with Watch(CLASSES):
            reload()
    assert fingerprint() == before
    assert "__setattr__" in vars(Child)
    assert "__setattr__" not in vars(Plain)
    assert "data" not in vars(torch.Tensor)


def test_a_failure_to_note_is_counted_and_never_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no more memory")

    monkeypatch.setattr("rebindlint.runtime.watch.raw_sites", broken)
    engine = Engine()
    with Watch() as watch:
        engine.plain = torch.ones(2)
    assert torch.equal(engine.plain, torch.ones(2))
    assert (watch.lost, watch.events) == (1, [])


def test_the_hosts_own_errors_pass_through_the_setters() -> None:
    engine = Engine()
    with Watch(CLASSES):
        with pytest.raises(TypeError, match="cannot assign"):
            engine.p = torch.ones(2)  # type: ignore[assignment]
        with pytest.raises(AttributeError):
            del engine.missing
        with pytest.raises(AttributeError):
            engine.slotted.other = 1  # type: ignore[attr-defined]
        with pytest.raises(dataclasses.FrozenInstanceError):
            Frozen(torch.ones(1)).w = torch.ones(1)  # type: ignore[misc]
        with pytest.raises(RuntimeError, match="incompatible tensor type"):
            engine.p.data = torch.ones(2, device="meta")


def test_reading_data_works_as_before() -> None:
    engine = Engine()
    with Watch():
        data = engine.p.data
    assert data.data_ptr() == engine.p.data_ptr()
    assert not isinstance(data, nn.Parameter)


def test_only_one_reload_is_watched_at_a_time() -> None:
    engine, before = Engine(), fingerprint()
    with Watch() as first:
        with Watch() as second:
            engine.plain = torch.ones(2)
        assert second.refused
        assert second.events == []
        assert len(first.events) == 1
    assert fingerprint() == before
    with Watch() as third:
        engine.plain = torch.ones(2)
    assert len(third.events) == 1


def test_other_threads_are_seen_too() -> None:
    engine = Engine()
    with Watch() as watch:
        thread = threading.Thread(target=assign_plain, args=(engine,))
        thread.start()
        thread.join()
    assert resolve(watch.events[0].chain[0]).function == "assign_plain"


class Base(nn.Module):
    pass


class Derived(Base):
    def __init__(self) -> None:
        super().__init__()
        self.plain = torch.zeros(2)
        self.p = nn.Parameter(torch.zeros(2), requires_grad=False)


def test_modules_are_watched_class_by_class_where_the_classes_are_known() -> None:
    seen, unseen = Derived(), Engine()
    before = fingerprint()
    with Watch([Base, Derived]) as watch:
        seen.plain = torch.ones(2)
        seen.p = nn.Parameter(torch.ones(2), requires_grad=False)
        del seen.plain
        unseen.plain = torch.ones(2)
        unseen.p = nn.Parameter(torch.ones(2), requires_grad=False)
    found = [(event.kind, event.owner_class, event.key) for event in watch.events]
    assert found == [
        ("setattr", "Derived", "plain"),
        ("setattr", "Derived", "p"),
        ("delattr", "Derived", "plain"),
        ("register_parameter", "Engine", "p"),
    ]
    assert fingerprint() == before
    assert not {"__setattr__", "__delattr__"} & {*vars(Base), *vars(Derived)}


def test_setters_with_names_of_their_own_for_their_parameters_are_called_as_the_host_calls_them() -> None:
    class Odd(Plain):
        def __setattr__(self, where: str, what: object) -> None:
            object.__setattr__(self, where, what)

    odd = Odd()
    with Watch([Odd]) as watch:
        odd.__setattr__(where="w", what=torch.ones(2))
        odd.w = torch.ones(2)
    assert [event.key for event in watch.events] == ["w", "w"]


def test_classes_are_patched_only_so_often_where_that_slows_them_down_for_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rebindlint.runtime.watch._LIMIT", 2)
    monkeypatch.setattr("rebindlint.runtime.watch._patching", itertools.count())
    layer, before, x = load(RebindingLayer), fingerprint(), inputs()
    guard = Guard(layer)
    guard.capture(lambda m: m(x))
    notes = []
    for seed in (2, 3, 4):
        with guard.reloading():
            assert (fingerprint() == before) == (seed == 4)
            layer.load(seed)
        report = guard.verify()
        assert [bool(finding.rebound) for finding in report.with_code("RT101")] == [seed != 4]
        notes.append(any("no longer noted" in note for note in report.notes))
        guard.capture(lambda m: m(x))
    assert notes == [False, False, True]


def test_without_blame_and_filling_nothing_is_patched() -> None:
    engine, before = Engine(), fingerprint()
    with Watch(CLASSES, blame=False, junk=False) as watch:
        assert fingerprint() == before
        engine.plain = torch.ones(2)
    assert watch.events == []


def test_classes_that_cannot_be_watched_are_left_alone() -> None:
    class Pair(tuple[int, int]):
        pass

    standard = (dict, types.SimpleNamespace, nn.Module, torch.Tensor, Pair, Frozen, threading.Thread)
    watch = Watch([*standard, Plain])
    assert watch._classes == [Plain]
