from __future__ import annotations

import itertools
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from rebindlint.runtime.sites import resolve
from rebindlint.runtime.storages import is_wrapper
from rebindlint.runtime.watch import Watch

from .reload_models import row_of, two_tensor

FACTORIES = ((torch, "empty"), (torch, "empty_strided"), (torch, "empty_like"), (torch, "empty_permuted"))
METHODS = ((torch.Tensor, "new_empty"), (torch.Tensor, "new_empty_strided"))


def fingerprint() -> list[object]:
    return [vars(owner).get(name) for owner, name in (*FACTORIES, *METHODS)]


class Engine(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.plain = torch.zeros(2)


@pytest.mark.parametrize(
    "allocate",
    [
        lambda: torch.empty(4),
        lambda: torch.empty_like(torch.zeros(4)),
        lambda: torch.zeros(4).new_empty(4),
        lambda: torch.empty_strided((2, 2), (2, 1)),
        lambda: nn.Linear(2, 2, device="meta").to_empty(device="cpu").weight.detach(),
        lambda: torch.empty(4, dtype=torch.bfloat16),
    ],
    ids=["empty", "empty_like", "new_empty", "empty_strided", "to_empty", "bfloat16"],
)
def test_memory_without_a_value_is_filled(allocate: Callable[[], torch.Tensor]) -> None:
    with Watch() as watch:
        tensor = allocate()
    assert tensor.isnan().all()
    assert watch.junk
    with Watch(junk=False) as watch:
        allocate()
    assert watch.junk == []


def test_only_memory_without_a_value_is_filled() -> None:
    with Watch() as watch:
        tensors = [torch.zeros(2), torch.ones(2), torch.full((2,), 3.0), torch.arange(2.0), torch.zeros(2).clone()]
        integers = torch.empty(2, dtype=torch.int64)
        torch.empty(2, device="meta")
    assert not any(tensor.isnan().any() for tensor in tensors)
    assert integers.dtype is torch.int64
    assert watch.junk == []


def test_wrapping_subclasses_pass_through_the_mode() -> None:
    with Watch():
        wrapped = two_tensor(torch.ones(2), torch.ones(2)) * 2
        empty = torch.empty_like(wrapped)
    assert is_wrapper(type(wrapped))
    assert torch.equal(wrapped.a, torch.full((2,), 2.0))
    assert is_wrapper(type(empty))


def test_what_the_host_has_compiled_runs_compiled() -> None:
    """And nobody looks at the compiler's own work."""
    graphs: list[int] = []

    def backend(graph: Any, _inputs: Any) -> Any:
        graphs.append(len(graph.graph.nodes))
        return graph.forward

    def double(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x).copy_(x) * 2

    compiled: Any = torch.compile(double, backend=backend, fullgraph=True)
    engine = Engine()
    with Watch([Engine]) as watch:
        engine.plain = compiled(torch.ones(2))
        engine.plain = compiled(torch.ones(2) * 2)
    assert len(graphs) == 1
    assert torch.equal(engine.plain, torch.full((2,), 4.0))
    assert [(event.kind, event.key) for event in watch.events] == [("setattr", "plain")] * 2


def compiler(graphs: list[int]) -> Callable[[Any, Any], Any]:
    def backend(graph: Any, _inputs: Any) -> Any:
        graphs.append(len(graph.graph.nodes))
        return graph.forward

    return backend


def test_what_was_compiled_before_runs_compiled() -> None:
    graphs: list[int] = []

    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    compiled: Any = torch.compile(double, backend=compiler(graphs), fullgraph=True)
    compiled(torch.ones(2))
    for _ in range(2):
        with Watch([Engine]):
            assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))
    assert len(graphs) == 1


def test_what_allocates_is_compiled_once_more_and_not_with_every_watch() -> None:
    graphs: list[int] = []

    def double(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x).copy_(x) * 2

    compiled: Any = torch.compile(double, backend=compiler(graphs), fullgraph=True)
    compiled(torch.ones(2))
    for _ in range(3):
        with Watch():
            compiled(torch.ones(2))
        compiled(torch.ones(2))
    assert len(graphs) == 2


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_what_becomes_torchscript_meanwhile() -> None:
    def copied(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x).copy_(x)

    script: Any = torch.jit.script
    with Watch() as watch:
        scripted = script(copied)
    assert torch.equal(scripted(torch.ones(2)), torch.ones(2))
    assert watch.lost == 0


def test_the_line_that_allocates_is_noted() -> None:
    with Watch() as watch:
        tensor = torch.empty(3)  # the line
    (junk,) = watch.junk
    site = resolve(junk.chain[0])
    assert (junk.number, junk.nbytes) == (tensor.untyped_storage()._cdata, 12)
    assert (site.row, site.function) == (row_of("the line", __file__), "test_the_line_that_allocates_is_noted")


def test_other_threads_allocate_too() -> None:
    found: list[torch.Tensor] = []
    with Watch() as watch:
        thread = threading.Thread(target=lambda: found.append(torch.empty(4)))
        thread.start()
        thread.join()
    assert found[0].isnan().all()
    assert len(watch.junk) == 1


def test_a_factory_that_writes_elsewhere_fills_nothing() -> None:
    kept = torch.ones(2)
    with Watch() as watch:
        torch.empty(2, out=kept)
    assert torch.equal(kept, torch.ones(2))
    assert watch.junk == []


@pytest.mark.parametrize("fails", [False, True])
def test_the_factories_are_as_they_were(fails: bool) -> None:
    before = fingerprint()
    try:
        with Watch(blame=False):
            assert all(now is not then for now, then in zip(fingerprint(), before, strict=True))
            if fails:
                raise KeyError("the host's own")
    except KeyError:
        pass
    assert all(now is then for now, then in zip(fingerprint(), before, strict=True))


def test_a_factory_that_the_host_keeps_passes_through_afterwards() -> None:
    with Watch() as watch:
        kept, sent = torch.empty, pickle.dumps(torch.empty)
    assert kept(2).shape == (2,)
    assert watch.junk == []
    assert pickle.loads(sent) is torch.empty
    assert kept == torch.empty
    assert torch.empty == kept
    assert repr(kept) == repr(torch.empty)


def test_tables_that_torch_makes_meanwhile_know_its_factories_afterwards() -> None:
    constructors: Any = torch.utils._device._device_constructors
    constructors.cache_clear()
    with Watch(), torch.device("meta"):
        assert torch.empty(2).is_meta
    with torch.device("meta"):
        assert torch.empty(2).is_meta


def test_a_factory_of_the_hosts_own_is_called_and_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    original = torch.empty

    def on_meta(*size: int) -> torch.Tensor:
        return original(*size, device="meta")

    monkeypatch.setattr(torch, "empty", on_meta)
    with Watch() as watch:
        assert torch.empty(2).is_meta
    assert torch.empty is on_meta
    assert watch.lost == 0


def test_what_the_host_asks_for_wrongly_is_its_own_error() -> None:
    with Watch() as watch:
        with pytest.raises(RuntimeError, match="negative dimension"):
            torch.empty(-1)
        with pytest.raises(TypeError):
            torch.empty_like()  # type: ignore[call-arg]
    assert watch.lost == 0


def test_a_failure_to_fill_is_counted_and_never_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> bool:
        raise RuntimeError("no more memory")

    monkeypatch.setattr("rebindlint.runtime.filling.fill_ones", broken)
    with Watch() as watch:
        assert torch.empty(2).shape == (2,)
    assert (watch.lost, watch.junk) == (1, [])


def test_the_class_of_tensors_is_changed_only_so_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rebindlint.runtime.watch._LIMIT", 1)
    monkeypatch.setattr("rebindlint.runtime.watch._patching", itertools.count())
    methods = []
    for _ in range(2):
        with Watch(blame=False) as watch:
            methods.append("new_empty" in vars(torch.Tensor))
            assert torch.empty(2).isnan().all()
        assert not watch.without_lines
    assert methods == [True, False]
