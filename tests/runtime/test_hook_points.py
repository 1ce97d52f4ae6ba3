from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rebindlint.runtime.vllm.hook_points import FUNCTIONS, WORKER_METHODS, Hooks
from rebindlint.runtime.vllm.process import forget_process

from .plugin_worlds import NEW, World, fake_world

LAYERWISE = "vllm.model_executor.model_loader.reload.layerwise"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with fake_world(tmp_path) as world:
        yield world


class Listener:
    def __init__(self) -> None:
        self.heard: list[str] = []

    def created(self, worker: Any) -> None:
        self.heard.append("created")

    def enter(self, point: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        self.heard.append(point)
        return point

    def leave(self, visit: str, error: BaseException | None) -> None:
        self.heard.append(f"{visit} left" if error is None else f"{visit} failed")


@pytest.fixture
def hooks() -> Iterator[Hooks]:
    hooks = Hooks(Listener())
    yield hooks
    hooks.uninstall()


def contents() -> dict[str, dict[str, object]]:
    """Everything callable in every fake module and class."""
    found: dict[str, dict[str, object]] = {}
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] == "vllm":
            found[name] = {k: v for k, v in vars(module).items() if callable(v)}
            for key, value in vars(module).items():
                if isinstance(value, type):
                    found[f"{name}:{key}"] = {k: v for k, v in vars(value).items() if callable(v)}
    return found


@pytest.mark.parametrize("imported_first", [True, False])
def test_every_name_of_a_function_is_hooked(world: World, hooks: Hooks, imported_first: bool) -> None:
    if imported_first:
        importlib.import_module("vllm.v1.worker.gpu_worker")
    hooks.install()
    worker = importlib.import_module("vllm.v1.worker.gpu_worker")
    package, defining = importlib.import_module(LAYERWISE.rpartition(".")[0]), importlib.import_module(LAYERWISE)
    hooked = worker.finalize_layerwise_reload
    assert hooked is package.finalize_layerwise_reload is defining.finalize_layerwise_reload
    assert inspect.unwrap(hooked) is not hooked
    assert hooked.__name__ == "finalize_layerwise_reload"


def test_modules_outside_vllm_that_bound_the_name_are_hooked_too(world: World, hooks: Hooks) -> None:
    trainer = ModuleType("some_trainer")
    trainer.process = importlib.import_module("vllm.model_executor.model_loader.utils").process_weights_after_loading  # type: ignore[attr-defined]
    sys.modules["some_trainer"] = trainer
    try:
        original = trainer.process
        hooks.install()
        assert inspect.unwrap(trainer.process) is original is not trainer.process
        hooks.uninstall()
        assert trainer.process is original
    finally:
        del sys.modules["some_trainer"]


def test_uninstalling_leaves_everything_as_it_was(world: World) -> None:
    for name in ("vllm.v1.worker.gpu_worker", *FUNCTIONS):
        importlib.import_module(name)
    before, finders = contents(), list(sys.meta_path)
    world.watch()
    worker = world.worker()
    world.decode(worker)
    worker.reload_weights(NEW)
    assert contents() != before
    forget_process()
    assert contents() == before
    assert sys.meta_path == finders
    assert worker.model_runner.model._forward_pre_hooks == {}


def test_modules_imported_meanwhile_are_put_back_too(world: World) -> None:
    world.watch()
    importlib.import_module("vllm.v1.worker.gpu_worker")
    forget_process()
    module = importlib.import_module("vllm.v1.worker.gpu_worker")
    assert inspect.unwrap(module.finalize_layerwise_reload) is module.finalize_layerwise_reload
    assert module.finalize_layerwise_reload.__module__ == LAYERWISE


def test_importing_with_the_finder_keeps_source_and_spec(world: World, hooks: Hooks) -> None:
    hooks.install()
    module = importlib.import_module(LAYERWISE)
    assert "def finalize_layerwise_reload" in inspect.getsource(module)
    assert module.__spec__ is not None
    assert "exec_module" not in vars(module.__spec__.loader)
    importlib.reload(module)


def test_a_worker_is_hooked_where_its_methods_are_defined(world: World, hooks: Hooks) -> None:
    hooks.install()
    module = importlib.import_module("vllm.v1.worker.gpu_worker")

    class OtherWorker(module.Worker):  # type: ignore[misc, name-defined]
        def sleep(self, level: int = 1) -> str:
            super().sleep(level)
            return "asleep"

    assert hooks.hook_worker_class(OtherWorker) == []
    assert hooks.hook_worker_class(OtherWorker) == []  # once is enough
    worker = OtherWorker(None)
    assert worker.sleep() == "asleep"
    listener: Any = hooks._observer
    assert listener.heard == ["created", "sleep", "sleep", "sleep left", "sleep left"]


def test_an_exception_is_told_and_passes(world: World, hooks: Hooks) -> None:
    module = importlib.import_module("vllm.v1.worker.gpu_worker")
    hooks.install()
    hooks.hook_worker_class(module.Worker)
    worker = module.Worker(None)
    with pytest.raises(AttributeError):
        worker.reload_weights(NEW)  # no model
    listener: Any = hooks._observer
    assert listener.heard[-1] == "reload_weights failed"


def test_a_release_without_a_hook_point_says_so_and_works(tmp_path: Path) -> None:
    with fake_world(tmp_path, updates=False, layerwise=False) as world:
        world.watch()
        worker = world.worker()
        world.decode(worker)
        worker.reload_weights(NEW)
        report = world.report()
        methods = {name for name in WORKER_METHODS if "update" in name} | {"init_weight_transfer_engine"}
        assert {"start_weight_update", "start_draft_weight_update", "finish_weight_update"} < methods
        assert set(report["missing_hook_points"]) == {
            f"{LAYERWISE}.finalize_layerwise_reload",
            *(f"vllm.v1.worker.gpu_worker.Worker.{name}" for name in methods),
        }
        assert world.last()["state"] == "judged"


def test_a_release_without_a_module_says_so(world: World, hooks: Hooks) -> None:
    (world.folder / "vllm/model_executor/model_loader/utils.py").unlink()
    hooks.install()
    assert hooks.missing() == ["vllm.model_executor.model_loader.utils.process_weights_after_loading"]
