"""Whatever fails, in the engine or in the plugin: the engine goes on as it would have, and the report says what is known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rebindlint.model import RebindlintError

from .plugin_worlds import NEW, World, codes, fake_world, phases


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with fake_world(tmp_path) as world:
        yield world


@pytest.mark.parametrize("mode", ["report", "raise"])
def test_what_the_reload_raises_passes_unchanged(world: World, mode: str) -> None:
    world.watch(mode)
    worker = world.worker(safe=False)
    world.decode(worker)
    with pytest.raises(ValueError, match=r"^a broken checkpoint$") as caught:
        worker.reload_weights([("weight", None)])
    assert caught.value.__cause__ is None
    assert (world.last()["state"], world.last()["error"]) == ("failed", "ValueError: a broken checkpoint")
    assert "RT100" in codes(world.last())
    worker.reload_weights(NEW) if mode == "report" else None
    assert len(world.report()["reloads"]) == (2 if mode == "report" else 1)


def test_an_update_that_fails_half_way_ends_there(world: World) -> None:
    world.watch()
    worker = world.worker()
    world.decode(worker)
    worker.start_weight_update()
    with pytest.raises(ValueError, match="a broken checkpoint"):
        worker.update_weights([("weight", None)])
    assert world.last()["state"] == "failed"
    phases(worker)
    assert [reload["state"] for reload in world.report()["reloads"]] == ["failed", "judged"]


def test_nothing_is_looked_at_while_memory_sleeps(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.watch()
    worker = world.worker()
    world.decode(worker)
    worker.sleep(1)
    with monkeypatch.context() as patch:
        patch.setattr("rebindlint.runtime.vllm.session_guard.SessionGuard._snapshot", None)
        worker.wake_up(tags=["weights"])
        with pytest.raises(ValueError, match="a broken checkpoint"):
            worker.reload_weights([("weight", None)])
        worker.reload_weights(NEW)
    assert world.last()["state"] == "running"
    worker.wake_up(tags=["kv_cache"])
    assert (world.last()["state"], world.last()["error"]) == ("failed", "ValueError: a broken checkpoint")


def test_memory_that_was_discarded_is_not_looked_at(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some releases give memory up without sleeping first."""
    world.watch()
    worker = world.worker()
    world.decode(worker)
    worker.discard(("kv_cache",))
    with monkeypatch.context() as patch:
        patch.setattr("rebindlint.runtime.vllm.session_guard.SessionGuard._snapshot", None)
        worker.reload_weights(NEW)
    assert (world.last()["opened_by"], world.last()["state"]) == ("discard", "running")
    worker.wake_up(["kv_cache"])
    assert (world.last()["state"], world.last()["findings"]) == ("judged", [])
    assert world.last()["calls"][0] == "discard"


def test_a_rank_that_dies_has_said_in_which_reload(world: World) -> None:
    world.watch()
    worker = world.worker()
    world.decode(worker)
    worker.reload_weights(NEW)
    model = worker.model_runner.model
    model.derive = lambda: world.report()  # what the disk has while the reload runs
    worker.start_weight_update()
    assert [reload["state"] for reload in world.report()["reloads"]] == ["judged", "running"]


def test_a_folder_that_cannot_be_written_is_one_line(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.out = world.folder / "file" / "out"
    (world.folder / "file").write_text("")
    world.watch()
    worker = world.worker(safe=False)
    world.decode(worker)
    worker.reload_weights(NEW)
    worker.reload_weights(NEW)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"rebindlint: rank 0: report not written, {world.out}: Not a directory"]


def test_caches_too_large_to_copy_leave_addresses(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rebindlint.runtime.vllm.decode_step.free_memory", lambda tensors: 1.0)
    world.watch()
    worker = world.worker(safe=False)
    world.decode(worker)
    assert "too large to be put back" in capsys.readouterr().err
    worker.reload_weights(NEW)
    assert world.last()["state"] == "addresses"
    assert "RT100" in codes(world.last())


@pytest.mark.parametrize("method", ["begin", "capture", "end", "verify"])
def test_a_fault_of_ours_never_reaches_the_engine(
    world: World, method: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise MemoryError("ours")

    monkeypatch.setattr(f"rebindlint.runtime.vllm.session_guard.SessionGuard.{method}", broken)
    world.watch("raise")
    worker = world.worker()
    world.decode(worker)
    worker.reload_weights(NEW)
    worker.reload_weights(NEW)
    world.decode(worker)
    said = capsys.readouterr().err
    assert "ours" in said or "ours" in str(world.report())
    assert "Traceback" not in said


def test_a_step_that_cannot_be_kept_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any) -> None:
        raise MemoryError("ours")

    monkeypatch.setattr("rebindlint.runtime.vllm.decode_step.DecodeStep.__init__", broken)
    world.watch()
    worker = world.worker()
    world.decode(worker)
    worker.reload_weights(NEW)
    (finding,) = world.last()["findings"]
    assert (finding["code"], finding["severity"]) == ("RT100", "error")
    assert "the first decode step could not be kept: MemoryError: ours" in finding["message"]


def test_steps_that_do_not_run_the_forward_are_told(world: World) -> None:
    world.watch()
    worker = world.worker()
    runner, model = worker.model_runner, worker.model_runner.model
    runner.model = lambda **kwargs: None  # an engine that replays a graph of its own
    world.decode(worker)
    runner.model = model
    worker.reload_weights(NEW)
    (finding,) = world.last()["findings"]
    assert (finding["code"], finding["severity"]) == ("RT100", "error")
    assert "not through the model's forward" in finding["message"]


def test_a_fault_of_ours_before_a_step_never_reaches_the_engine(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise MemoryError("ours")

    world.watch("raise")
    worker = world.worker(safe=False)
    world.decode(worker)
    worker.model_runner.model.load_weights(NEW)
    monkeypatch.setattr("rebindlint.runtime.vllm.session_guard.SessionGuard.end", broken)
    world.decode(worker, 2)
    assert capsys.readouterr().err == "rebindlint: rank 0: execute_model is not watched: MemoryError: ours\n"
    assert world.last()["state"] == "running"  # it was never judged, and the merged report says so


def test_raise_stops_at_the_step_that_ends_a_reload(world: World) -> None:
    world.watch("raise")
    worker = world.worker(safe=False)
    world.decode(worker)
    worker.model_runner.model.load_weights(NEW)
    worker.model_runner.model.derive()
    with pytest.raises(RebindlintError, match="reload 1 \\(load_weights\\) on rank 0 is not safe: RT101"):
        world.decode(worker)
    world.decode(worker)
