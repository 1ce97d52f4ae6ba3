"""The plugin's comparison with a fresh load: asked for, and left out in one line where it cannot be had."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from rebindlint.model import RebindlintError
from rebindlint.runtime.vllm.beside import Beside
from rebindlint.runtime.vllm.settings import Settings

from .plugin_worlds import NEW, World, codes, fake_world
from .test_checkpoints import write

# the weight, what is derived from it, and the table that the step reads
VALUES = "3 tensors of the live model against a fresh load (exact): equal"
RESULT = "result of the step against a fresh load (exact): equal"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with fake_world(tmp_path) as world:
        yield world


def decoding(world: World, *, forgetful: bool = False, fresh: bool = True, **options: Any) -> Any:
    world.watch(fresh=fresh)
    worker = world.worker(**options)
    worker.model_runner.model.forgetful = forgetful
    world.decode(worker)
    return worker


def second(world: World) -> str:
    return str(world.checkpoint("second", NEW[0][1]))


def test_a_safe_reload_equals_a_fresh_load(world: World) -> None:
    worker = decoding(world)
    answers = world.decode(worker)
    worker.reload_weights(weights_path=second(world))
    reload = world.last()
    assert (reload["state"], codes(reload)) == ("judged", [])
    assert {VALUES, RESULT} <= set(reload["comparisons"])
    assert not torch.equal(world.decode(worker)[0], answers[0])


def test_what_address_and_replay_cannot_see_is_found(world: World) -> None:
    """The derived tensor is where it was and is read from there, with values of the first checkpoint."""
    worker = decoding(world, forgetful=True)
    worker.reload_weights(weights_path=second(world))
    assert codes(world.last()) == ["RT104", "RT104"]
    assert "model.derived" in {finding["tensor"] for finding in world.last()["findings"]}


def test_nobody_pays_for_it_unasked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = decoding(world, forgetful=True, fresh=False)
    monkeypatch.setattr("rebindlint.runtime.vllm.beside.load_model", None)
    worker.reload_weights(weights_path=second(world))
    assert codes(world.last()) == []
    assert not any("fresh load" in text for key in ("comparisons", "notes") for text in world.last()[key])


def test_weights_of_no_checkpoint_are_not_compared(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    worker = decoding(world)
    worker.reload_weights(NEW)
    note = "not compared with a fresh load: the weights came from no checkpoint"
    assert note in world.last()["notes"]
    worker.model_runner.model.derive()
    importlib.import_module("vllm.model_executor.model_loader.utils").process_weights_after_loading(
        worker.model_runner.model
    )
    assert note in world.last()["notes"]
    assert codes(world.last()) == []
    assert capsys.readouterr().err == ""


def test_processing_again_is_compared_with_the_checkpoint_that_was_loaded_last(world: World) -> None:
    worker = decoding(world)
    worker.reload_weights(weights_path=second(world))
    importlib.import_module("vllm.model_executor.model_loader.utils").process_weights_after_loading(
        worker.model_runner.model
    )
    assert (world.last()["opened_by"], codes(world.last())) == ("process_weights_after_loading", [])
    assert RESULT in world.last()["comparisons"]


@pytest.mark.parametrize("mode", ["report", "raise"])
def test_a_second_model_without_memory_is_one_line_and_no_fault(
    world: World, mode: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def load_model(*_: object) -> None:
        raise torch.OutOfMemoryError("tried to allocate 30.00 GiB\nof which none is free")

    monkeypatch.setattr("rebindlint.runtime.vllm.beside.load_model", load_model)
    world.watch(mode, fresh=True)
    worker = world.worker()
    world.decode(worker)
    path = second(world)
    worker.reload_weights(weights_path=path)
    worker.reload_weights(weights_path=path)
    reason = "OutOfMemoryError: tried to allocate 30.00 GiB"
    for reload in world.report()["reloads"]:
        assert (reload["state"], reload["findings"]) == ("judged", [])
        assert f"not compared with a fresh load of {path}: {reason}" in reload["notes"]
    said = capsys.readouterr().err
    assert said == f"rebindlint: rank 0: reloads are not compared with a fresh load: {reason}\n"


def test_a_second_model_that_would_not_fit_is_not_begun(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rebindlint.runtime.vllm.beside.free_memory", lambda tensors: 70.0)
    monkeypatch.setattr("rebindlint.runtime.vllm.beside.load_model", None)
    worker = decoding(world)
    worker.reload_weights(weights_path=second(world))
    assert "a second model takes 0.0 GiB, and 0.0 GiB are free" in capsys.readouterr().err
    assert (world.last()["state"], world.last()["findings"]) == ("judged", [])


def test_where_the_step_cannot_be_run_values_are_compared(world: World) -> None:
    worker = decoding(world, broadcast=True, size=2)
    parameter = worker.model_runner.model.weight
    worker.model_runner.model.load_weights = lambda weights: parameter.data.zero_()  # a loader that loads nothing
    worker.reload_weights(weights_path=second(world))
    assert world.last()["state"] == "addresses"
    assert "model.weight" in {f["tensor"] for f in world.last()["findings"] if f["code"] == "RT104"}


def test_after_a_reload_that_failed_nothing_is_known_until_the_next_whole_one(world: World) -> None:
    worker = decoding(world)
    with pytest.raises(FileNotFoundError):
        worker.reload_weights(weights_path=str(world.folder / "nowhere"))
    importlib.import_module("vllm.model_executor.model_loader.utils").process_weights_after_loading(
        worker.model_runner.model
    )
    assert "not compared with a fresh load: an earlier reload failed" in world.last()["notes"]
    worker.reload_weights(weights_path=second(world))
    assert RESULT in world.last()["comparisons"]


def test_an_update_of_the_draft_model_leaves_the_checkpoint_of_the_model(world: World) -> None:
    worker = decoding(world)
    worker.init_weight_transfer_engine({})
    worker.start_draft_weight_update()
    worker.update_weights(NEW)
    worker.finish_weight_update()
    (reload,) = world.report()["reloads"]
    assert (reload["opened_by"], reload["state"], codes(reload)) == ("start_draft_weight_update", "judged", [])
    assert any("the draft model was updated" in note for note in reload["notes"])
    assert RESULT in reload["comparisons"]


def test_a_driver_that_knows_the_checkpoint_names_it(world: World) -> None:
    worker = decoding(world, forgetful=True, fresh=False)
    assert world.ranks is not None
    rank = world.ranks.rank_of(worker)
    for _ in range(2):
        rank.snapshot()
        worker.model_runner.model.load_weights(NEW)
        worker.model_runner.model.derive()
        assert codes(rank.verified(second(world))) == ["RT104", "RT104"]
    rank.snapshot()
    assert codes(rank.verified()) == []


def config(model: str, load_format: str = "auto") -> Any:
    from types import SimpleNamespace

    return SimpleNamespace(
        model_config=SimpleNamespace(model=model), load_config=SimpleNamespace(load_format=load_format)
    )


def test_which_checkpoint_the_weights_are_those_of(tmp_path: Path) -> None:
    whole, partial = write(tmp_path / "a", {"a": [4], "b": [4]}), write(tmp_path / "b", {"a": [4]})
    beside = Beside(wanted=True)
    beside.loaded(config(str(whole)))
    assert beside.checkpoint == str(whole)
    beside.called("reload_weights", (None,), {}, config(str(whole)))
    assert beside.checkpoint == str(whole)
    beside.called("reload_weights", (None, None, str(partial)), {}, config(str(whole)))
    assert (beside.checkpoint, beside.reason) == ("", f"{partial} lacks 1 tensor of {whole}")
    beside.called("reload_weights", (None,), {"weights_path": whole}, config(str(partial)))
    beside.called("wake_up", (None,), {}, config(str(whole)))
    assert beside.checkpoint == str(whole)
    beside.called("start_weight_update", (None,), {}, config(str(whole)))
    assert beside.checkpoint == ""
    beside.loaded(config(str(whole), "dummy"))
    assert beside.reason == "the model was loaded with dummy weights"


@pytest.mark.parametrize(("value", "fresh"), [(None, False), ("", False), ("0", False), ("1", True)])
def test_the_variable_asks_for_it(value: str | None, fresh: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REBINDLINT", "report")
    monkeypatch.delenv("REBINDLINT_FRESH", raising=False)
    if value is not None:
        monkeypatch.setenv("REBINDLINT_FRESH", value)
    assert Settings.of_environment().fresh is fresh


def test_another_value_of_the_variable_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REBINDLINT", "report")
    monkeypatch.setenv("REBINDLINT_FRESH", "yes")
    with pytest.raises(RebindlintError, match=r"^REBINDLINT_FRESH=yes is unknown; use 1 or 0$"):
        Settings.of_environment()
