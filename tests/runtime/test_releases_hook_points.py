"""What the plugin hooks and reads, looked up in the sources of released vLLM. Needs the corpus that
``benchmarks.released`` fetches, and is skipped without.
"""

from __future__ import annotations

import ast
import os
from functools import cache
from pathlib import Path

import pytest

from rebindlint.runtime.vllm.decode_step import _LOCAL
from rebindlint.runtime.vllm.hook_points import FUNCTIONS, WORKER_BASE, WORKER_METHODS

TREES = Path(os.environ.get("REBINDLINT_CORPUS", Path.home() / ".cache" / "rebindlint-corpus"))
# Worker methods that a release does not have yet.
LACKING = {
    "0.20.2": {"start_weight_update", "finish_weight_update", "start_draft_weight_update", "discard"},
    "0.24.0": {"start_draft_weight_update", "discard"},
    "0.25.1": {"start_draft_weight_update", "discard"},
    "0.26.0": {"discard"},
    "0.29.0": {"discard"},
    "0.33.0": set(),
}
WORKERS = ("gpu_worker.Worker", "cpu_worker.CPUWorker", "xpu_worker.XPUWorker")


@pytest.fixture(params=LACKING)
def release(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if not (TREES / f"vllm-{name}" / "vllm").is_dir():
        pytest.skip(f"vllm {name} is not in {TREES}")
    return name


@cache
def module(release: str, name: str) -> ast.Module:
    path = TREES / f"vllm-{release}" / Path(*name.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def functions(body: list[ast.stmt]) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def class_of(release: str, name: str) -> ast.ClassDef:
    where, _, cls = name.rpartition(".")
    return next(n for n in module(release, where).body if isinstance(n, ast.ClassDef) and n.name == cls)


def methods(release: str, worker: str) -> dict[str, ast.FunctionDef]:
    """Of a worker class and, where it does not define them itself, of its bases in the worker's package."""
    found: dict[str, ast.FunctionDef] = {}
    package = "vllm.v1.worker"
    homes = {name.rpartition(".")[2]: name for name in (*WORKERS, "worker_base.WorkerBase")}
    waiting = [worker]
    while waiting:
        node = class_of(release, f"{package}.{waiting.pop(0)}")
        for name, function in functions(node.body).items():
            found.setdefault(name, function)
        waiting += [homes[base.id] for base in node.bases if isinstance(base, ast.Name) and base.id in homes]
    return found


def fields(node: ast.ClassDef) -> set[str]:
    return {
        statement.target.id
        for statement in node.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    }


def parameters(function: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in function.args.args]


@pytest.mark.parametrize("worker", WORKERS)
def test_every_release_has_the_worker_methods_that_it_is_known_to_have(release: str, worker: str) -> None:
    assert set(WORKER_METHODS) - methods(release, worker).keys() == LACKING[release]


def test_every_release_has_the_functions(release: str) -> None:
    for name, wanted in FUNCTIONS.items():
        assert set(wanted) <= functions(module(release, name).body).keys(), name
    assert "__init__" in functions(class_of(release, ".".join(WORKER_BASE)).body)


def test_arguments_are_where_they_are_looked_for(release: str) -> None:
    found = methods(release, WORKERS[0])
    assert parameters(found["execute_model"])[1] == "scheduler_output"
    assert parameters(found["wake_up"])[1] == "tags"
    if "discard" in found:
        assert parameters(found["discard"])[1] == "tags"
    runner = functions(class_of(release, "vllm.v1.worker.gpu_model_runner.GPUModelRunner").body)
    assert parameters(runner["reload_weights"])[1:3] == ["weights_iterator", "weights_path"]
    assert "get_model" in runner


def test_what_a_scheduler_gives_out_is_read_by_its_names(release: str) -> None:
    output = fields(class_of(release, "vllm.v1.core.sched.output.SchedulerOutput"))
    assert {
        "num_scheduled_tokens", "total_num_scheduled_tokens", "scheduled_new_reqs", "scheduled_spec_decode_tokens",
    } <= output  # fmt: skip


def test_the_forward_context_is_entered_by_its_names(release: str) -> None:
    context = module(release, "vllm.forward_context")
    wanted = {"get_forward_context", "is_forward_context_available", "override_forward_context"}
    assert wanted <= functions(context.body).keys()
    assert {"attn_metadata", "slot_mapping", "no_compile_layers"} <= fields(
        class_of(release, "vllm.forward_context.ForwardContext")
    )


def test_the_collectives_that_are_taken_locally_exist(release: str) -> None:
    group = functions(class_of(release, "vllm.distributed.parallel_state.GroupCoordinator").body)
    assert set(_LOCAL) <= group.keys()
