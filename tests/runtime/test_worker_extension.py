from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rebindlint.runtime.vllm
from rebindlint.model import RebindlintError
from rebindlint.runtime.vllm import WorkerExtension

from .plugin_worlds import NEW, World, codes, fake_world


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with fake_world(tmp_path) as world:
        yield world


def extended(world: World, **options: Any) -> Any:
    """A worker as vLLM makes one with an extension: its class gets another base."""
    worker = world.worker(**options)
    cls = type(worker)
    assert not [name for name in dir(WorkerExtension) if not name.startswith("__") and hasattr(cls, name)]
    cls.__bases__ = (*cls.__bases__, WorkerExtension)
    return worker


@pytest.mark.parametrize("plugin", [True, False])
def test_a_driver_asks_for_any_reload(world: World, plugin: bool) -> None:
    if plugin:
        world.watch()
    worker = extended(world, safe=False)
    worker.rebindlint_capture()
    world.decode(worker)
    assert worker.rebindlint_snapshot() == {"rank": 0, "captured": True, "note": ""}
    worker.model_runner.model.derive()  # no hook point would tell
    reload = worker.rebindlint_verify()
    assert codes(reload) == ["RT101"]
    assert (reload["rank"], reload["opened_by"], reload["state"]) == (0, "snapshot", "judged")
    assert json.loads(json.dumps(reload)) == reload
    assert worker.rebindlint_verify() == reload  # the last one again
    assert worker.rebindlint_report()["reloads"] == [{k: v for k, v in reload.items() if k != "rank"}]
    assert (world.out is not None and world.out.exists()) is plugin


def test_a_reload_inside_belongs_to_the_snapshot(world: World) -> None:
    worker = extended(world, safe=False)
    worker.rebindlint_capture()
    world.decode(worker)
    worker.rebindlint_snapshot()
    worker.reload_weights(NEW)
    reload = worker.rebindlint_verify()
    assert reload["calls"][:2] == ["snapshot", "reload_weights"]
    assert codes(reload) == ["RT101", "RT102"]
    assert next(f for f in reload["findings"] if f["code"] == "RT101")["rebound_at"] is not None


def test_without_a_step_it_says_so(world: World) -> None:
    worker = extended(world)
    assert worker.rebindlint_snapshot()["captured"] is False
    assert worker.rebindlint_verify()["state"] == "addresses"


def test_asking_in_the_wrong_order_is_one_line(world: World) -> None:
    worker = extended(world)
    with pytest.raises(RebindlintError, match="nothing was reloaded"):
        worker.rebindlint_verify()
    worker.rebindlint_snapshot()
    with pytest.raises(RebindlintError, match="a reload has begun already"):
        worker.rebindlint_snapshot()
    worker.rebindlint_verify()
    empty = type(worker)(None)
    with pytest.raises(RebindlintError, match="the worker has no model"):
        empty.rebindlint_snapshot()


def test_the_package_gives_the_extension_and_nothing_else() -> None:
    assert rebindlint.runtime.vllm.WorkerExtension is WorkerExtension
    with pytest.raises(AttributeError, match="no attribute 'Worker'"):
        _ = rebindlint.runtime.vllm.Worker
