"""The plugin in an engine of our own making: every path by which weights come, and every way in which it may fail."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from rebindlint.model import RebindlintError
from rebindlint.runtime.vllm.decode_step import is_decode, local_collectives

from .fake_vllm import write_fake_vllm
from .plugin_worlds import NEW, World, codes, fake_world, phases, scheduled

ROOT = Path(__file__).parents[2]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with fake_world(tmp_path) as world:
        yield world


def load_and_process(worker: Any) -> None:
    from vllm.model_executor.model_loader import utils  # type: ignore[import-not-found, unused-ignore]

    model = worker.model_runner.model
    model.load_weights(NEW[:1])
    model.load_weights([])  # trainers send weights in several pieces
    utils.process_weights_after_loading(model)


def over_a_sleep(worker: Any) -> None:
    worker.sleep(2)
    worker.wake_up(["weights"])
    worker.reload_weights(NEW)
    worker.wake_up(["kv_cache"])


PATHS = [
    ("reload_weights", lambda worker: worker.reload_weights(NEW), "layerwise"),
    ("start_weight_update", phases, "layerwise"),
    ("load_weights", load_and_process, "direct"),
    ("sleep", over_a_sleep, "layerwise"),
]


@pytest.mark.parametrize(("opened_by", "reload", "protocol"), PATHS, ids=[path[0] for path in PATHS])
@pytest.mark.parametrize("safe", [True, False])
def test_each_path_is_one_reload(world: World, opened_by: str, reload: Any, protocol: str, safe: bool) -> None:
    world.watch()
    worker = world.worker(safe=safe)
    world.decode(worker)
    reload(worker)
    (seen,) = world.report()["reloads"]
    assert (seen["opened_by"], seen["protocol"], seen["state"], seen["error"]) == (opened_by, protocol, "judged", "")
    assert codes(seen) == ([] if safe else ["RT101", "RT102"])
    assert world.report()["problems"] == []


def test_a_finding_names_tensor_reader_and_the_line_that_rebound(world: World) -> None:
    world.watch()
    worker = world.worker(safe=False)
    world.decode(worker)
    worker.reload_weights(NEW)
    finding = next(f for f in world.last()["findings"] if f["code"] == "RT101")
    assert finding["tensor"] == "model.derived"
    assert finding["read_by"]["operator"] == "aten.matmul.default"
    assert finding["rebound_at"]["function"] == "Model.derive"
    assert finding["filename"].endswith("gpu_worker.py")
    assert "self.derived = new" in finding["trace"][-1]["text"]
    assert any("filled with NaN" in evidence for evidence in finding["evidence"])


def test_the_engine_computes_what_it_computes_unwatched(world: World) -> None:
    def life(worker: Any) -> list[torch.Tensor]:
        outputs = world.decode(worker, 2)
        worker.reload_weights(NEW)
        outputs += world.decode(worker, 2)
        phases(worker)
        return [*outputs, *world.decode(worker), worker.model_runner.model.kv_cache.clone()]

    plain = life(world.worker(safe=False))
    world.watch()
    for output, expected in zip(life(world.worker(safe=False)), plain, strict=True):
        assert torch.equal(output, expected)
    assert world.report()["reloads"][-1]["state"] == "judged"


def test_other_ranks_are_never_waited_for(world: World) -> None:
    world.watch()
    worker = world.worker(size=2)
    from vllm.distributed.parallel_state import GroupCoordinator  # type: ignore[import-not-found, unused-ignore]

    world.decode(worker)
    worker.reload_weights(NEW)
    assert GroupCoordinator.waited == 1  # the engine's own step
    assert world.last()["state"] == "judged"


def test_a_step_that_needs_other_ranks_is_not_run(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.watch("raise")
    worker = world.worker(size=2, safe=False, broadcast=True)
    from vllm.distributed.parallel_state import GroupCoordinator

    world.decode(worker)
    assert "needs other ranks (broadcast)" in capsys.readouterr().err
    waited = GroupCoordinator.waited
    worker.reload_weights(NEW)  # nobody could judge it: no reason to end the host's reload
    assert GroupCoordinator.waited == waited
    assert world.last()["state"] == "addresses"
    assert codes(world.last()) == ["RT100"]


def test_collectives_are_put_back(world: World) -> None:
    from vllm.distributed.parallel_state import GroupCoordinator

    before = (dict(vars(GroupCoordinator)), torch.distributed.all_reduce)
    with local_collectives():
        assert vars(GroupCoordinator)["all_reduce"] is not before[0]["all_reduce"]
        with pytest.raises(RebindlintError, match="needs other ranks \\(all_reduce\\)"):
            torch.distributed.all_reduce(torch.ones(1))
    assert (dict(vars(GroupCoordinator)), torch.distributed.all_reduce) == before


def test_before_a_decode_step_there_are_addresses_and_a_warning(world: World) -> None:
    world.watch("raise")
    worker = world.worker(safe=False)
    worker.execute_model(scheduled(new=1))  # reads prompts: no decode step
    worker.reload_weights(NEW)
    assert world.last()["state"] == "addresses"
    (finding,) = world.last()["findings"]
    assert (finding["code"], finding["severity"]) == ("RT100", "warning")
    assert "no decode step ran before this reload" in finding["message"]
    assert "model.derived" in finding["evidence"][0]
    world.decode(worker)
    with pytest.raises(RebindlintError):
        worker.reload_weights(NEW)
    assert world.last()["state"] == "judged"


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (scheduled(), True),
        (scheduled(new=1), False),
        (scheduled(tokens=3), False),
        (None, False),
    ],
)
def test_a_decode_step_is_one_token_each(step: Any, expected: bool) -> None:
    assert is_decode(step) is expected


def test_drafted_tokens_are_part_of_a_decode_step() -> None:
    step = scheduled(tokens=3)
    step.scheduled_spec_decode_tokens = {"a": [1, 2], "b": [1, 2]}
    assert is_decode(step)


def test_raise_ends_the_reload_with_one_line(world: World) -> None:
    world.watch("raise")
    worker = world.worker(safe=False)
    world.decode(worker)
    with pytest.raises(RebindlintError) as caught:
        worker.reload_weights(NEW)
    assert "reload 1 (reload_weights) on rank 0 is not safe: RT101 `model.derived`" in str(caught.value)
    assert "and 1 more error" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert world.last()["state"] == "judged"  # written before
    assert torch.equal(worker.model_runner.model.weight, NEW[0][1])  # after the reload


def test_raise_is_silent_when_the_reload_is_safe(world: World) -> None:
    world.watch("raise")
    worker = world.worker()
    world.decode(worker)
    worker.reload_weights(NEW)
    phases(worker)
    assert [codes(reload) for reload in world.report()["reloads"]] == [[], []]


def test_a_reload_that_nothing_ends_is_judged_before_the_next_step(world: World) -> None:
    world.watch()
    worker = world.worker(safe=False)
    world.decode(worker)
    model = worker.model_runner.model
    model.load_weights(NEW)
    model.derive()
    world.decode(worker)
    assert world.last()["state"] == "judged"
    assert codes(world.last()) == ["RT101", "RT102"]


def test_two_engines_in_one_process_are_two_ranks(world: World) -> None:
    world.watch()
    first, second = world.worker(rank=0, size=2), world.worker(rank=1, size=2, safe=False)
    for worker in (first, second):
        world.decode(worker)
        worker.reload_weights(NEW)
    assert codes(world.last(0)) == []
    assert codes(world.last(1)) == ["RT101", "RT102"]


def test_a_worker_that_loads_another_model_starts_afresh(world: World) -> None:
    world.watch()
    worker = world.worker(safe=False)
    world.decode(worker)
    worker.load_model()
    worker.reload_weights(NEW)
    assert world.last()["state"] == "addresses"
    world.decode(worker)
    worker.reload_weights(NEW)
    assert world.last()["state"] == "judged"


def register(folder: Path, code: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """What a fresh process prints that loads the plugin."""
    program = f"""
import sys
from rebindlint.runtime.vllm.plugin import register
register()
print(*sorted({{"torch", "libcst", "click", "vllm", "rebindlint.runtime.vllm.process"}} & set(sys.modules)))
{code}
"""
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", **environment}
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("environment", [{}, {"REBINDLINT": ""}])
def test_without_the_variable_nothing_is_imported(tmp_path: Path, environment: dict[str, str]) -> None:
    done = register(tmp_path, **environment)
    assert (done.stdout, done.stderr, done.returncode) == ("\n", "", 0)


def test_an_unknown_mode_is_one_line(tmp_path: Path) -> None:
    done = register(tmp_path, REBINDLINT="yes")
    assert done.returncode == 0
    assert done.stderr == "rebindlint: not watching this process: REBINDLINT=yes is unknown; use report or raise\n"


def test_the_variable_is_enough(tmp_path: Path) -> None:
    write_fake_vllm(tmp_path)
    code = """
import types
from vllm.v1.worker.gpu_worker import Worker
worker = Worker(types.SimpleNamespace(instance_id="e"), 0)
worker.load_model()
worker.reload_weights([])
import os
print(os.environ["VLLM_RAY_EXTRA_ENV_VAR_PREFIXES_TO_COPY"])
"""
    done = register(tmp_path, code, REBINDLINT="report")
    assert (done.stdout, done.stderr) == ("rebindlint.runtime.vllm.process torch\nREBINDLINT\n", "")
    assert [path.name.split("-")[0] for path in (tmp_path / "rebindlint-reports").iterdir()] == ["e"]
