from __future__ import annotations

import gc
import mmap
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from rebindlint.runtime import storages
from rebindlint.runtime.storages import (
    SavedBytes,
    WeakStorages,
    alias,
    digest,
    fill_ones,
    is_wrapper,
    may_be_changed,
    nan_fractions,
    only_owner,
    ownership_is_provable,
    storage_of,
    torch_allocated,
)

FLOATS = [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2]


def test_an_address_comes_back_but_a_number_does_not() -> None:
    weak = WeakStorages()
    numbers, addresses = set(), set()
    for _ in range(200):
        tensor = torch.empty(64)
        storage = tensor.untyped_storage()
        numbers.add(weak.add(storage))
        addresses.add(storage.data_ptr())
        del tensor, storage
    assert len(addresses) < 200
    assert len(numbers) == 200
    assert all(weak.freed(number) for number in numbers)


def test_a_weak_storage_is_freed_with_its_last_owner() -> None:
    weak = WeakStorages()
    tensor = torch.empty(4)
    number = weak.add(tensor.untyped_storage())
    view = tensor[1:]
    del tensor
    assert not weak.freed(number)
    del view
    assert weak.freed(number)
    with pytest.raises(KeyError):
        weak.freed(number + 1)


def test_this_torch_counts_owners() -> None:
    assert ownership_is_provable()


def test_only_our_aliases_own_a_storage_that_its_owner_dropped() -> None:
    tensor = torch.empty(4)
    mine = [alias(tensor), alias(tensor)]
    assert not only_owner(mine[0], 2)
    del tensor
    assert only_owner(mine[0], 2)
    assert not only_owner(mine[0], 1)


@pytest.mark.parametrize(
    "keep",
    [
        lambda t: t[1:],
        lambda t: t.numpy(),
        lambda t: t.untyped_storage(),
        lambda t: t.detach(),
        lambda t: torch.nn.Parameter(t),
        lambda t: memoryview(t.numpy()),
    ],
    ids=["view", "numpy", "storage object", "alias", "parameter", "buffer"],
)
def test_whatever_else_holds_a_storage_is_an_owner(keep: object) -> None:
    assert callable(keep)
    tensor = torch.zeros(4)
    other = keep(tensor)
    mine = alias(tensor)
    del tensor
    assert not only_owner(mine, 1)
    del other
    gc.collect()
    assert only_owner(mine, 1)


def test_ownership_is_never_claimed_when_it_cannot_be_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storages, "_baseline", lambda: None)
    assert not only_owner(torch.empty(1), 1)
    assert not ownership_is_provable()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_ones_read_as_nan(dtype: torch.dtype) -> None:
    tensor = torch.zeros(8, dtype=dtype)
    assert fill_ones(tensor)
    assert tensor.to(torch.float32).isnan().all()


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fnuz, torch.float8_e5m2fnuz], ids=str)
def test_the_fnuz_formats_have_their_own_nan(dtype: torch.dtype) -> None:
    tensor = torch.zeros(8, dtype=dtype)
    assert fill_ones(tensor)
    assert tensor.to(torch.float32).isnan().all()


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool], ids=str)
def test_integers_are_never_filled(dtype: torch.dtype) -> None:
    tensor = torch.ones(8, dtype=dtype)
    assert not fill_ones(tensor)
    assert (tensor == 1).all()


def test_saved_bytes_come_back_as_often_as_wanted_and_reach_every_view() -> None:
    tensor = torch.arange(6.0)
    saved = SavedBytes([tensor[2:4], tensor])
    for _ in range(2):
        tensor.fill_(7)
        saved.restore()
        assert torch.equal(tensor, torch.arange(6.0))


def test_saved_bytes_leave_a_resized_storage_alone() -> None:
    tensor = torch.arange(6.0)
    saved = SavedBytes([tensor])
    tensor.untyped_storage().resize_(0)
    saved.restore()
    assert tensor.untyped_storage().nbytes() == 0


@pytest.mark.parametrize("device_checksum", [False, True])
def test_a_digest_tells_values_apart_and_not_layouts(device_checksum: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if device_checksum:
        monkeypatch.setattr(storages, "_CHUNK", 5)

        def of(tensor: torch.Tensor) -> str | None:
            return storages._device_checksum(tensor.contiguous().reshape(-1))
    else:

        def of(tensor: torch.Tensor) -> str | None:
            return digest(tensor, 1 << 20)

    tensor = torch.arange(12.0).reshape(3, 4)
    swapped = tensor.clone()
    swapped[0, 0], swapped[0, 1] = 1.0, 0.0
    assert of(tensor) == of(tensor.clone()) == of(tensor.t().contiguous().t())
    assert len({of(tensor), of(swapped), of(tensor.t()), of(tensor + 1)}) == 4


def test_a_digest_has_its_limits() -> None:
    assert digest(torch.zeros(100), 100) is None
    assert digest(torch.empty(0), 100) == "empty"
    assert digest(torch.empty(3, device="meta"), 100) is None
    conjugate = torch.tensor([1 + 2j]).conj()
    assert digest(conjugate, 100) == digest(torch.tensor([1 - 2j]), 100)


def test_nan_fractions_tell_the_filling_from_computed_nan() -> None:
    tensor = torch.zeros(4)
    assert nan_fractions(tensor) is None
    tensor[0] = float("nan")
    assert nan_fractions(tensor) == (0.25, 0.0)
    fill_ones(tensor)
    assert nan_fractions(tensor) == (1.0, 1.0)
    converted = nan_fractions(tensor.to(torch.float64))
    assert converted is not None
    assert converted == (1.0, 0.0)  # a NaN still, with other bytes
    assert nan_fractions(torch.zeros(4, dtype=torch.int32)) is None


def test_only_memory_that_torch_allocated_for_us_is_ours(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    file.write_bytes(bytes(16))
    buffer = bytearray(16)
    private = torch.from_file(str(file), shared=False, size=4)
    shared: Any = torch.ones(4)
    shared.share_memory_()
    mapped = torch.from_file(str(file), shared=True, size=4)
    cases = {
        "plain": (torch.ones(4), True, True),
        "view": (torch.ones(4)[1:], True, True),
        "array": (torch.frombuffer(buffer, dtype=torch.float32), False, True),
        "private file": (private, False, True),
        "file": (mapped, False, False),
        "shared": (shared, False, False),
    }
    found = {name: (torch_allocated(t), may_be_changed(t)) for name, (t, _, _) in cases.items()}
    if not Path("/proc/self/maps").exists():
        pytest.skip("mappings cannot be read here")
    assert found == {name: (allocated, changeable) for name, (_, allocated, changeable) in cases.items()}


def test_read_only_memory_is_never_changed() -> None:
    with mmap.mmap(-1, 4096, prot=mmap.PROT_READ) as memory, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that it cannot protect the buffer
        tensor = torch.frombuffer(memory, dtype=torch.float32)
        assert not may_be_changed(tensor)
        del tensor


def test_tensors_without_storage_have_none() -> None:
    assert storage_of(torch.zeros(2, 2).to_sparse()) is None
    assert not is_wrapper(torch.nn.Parameter)
