"""Verifies several reloads in one process of the engine's environment, one engine after the other.

Reads requests by name from stdin, as JSON, and prints for each what was found or why it could not work; also which
attributes of torch and of the engine are others after a verification than before it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def outcome(request: dict[str, Any]) -> dict[str, Any]:
    from rebindlint.model import RebindlintError
    from rebindlint.runtime.vllm.driver import verify_engine
    from rebindlint.runtime.vllm.request import Request

    arguments = {**request, "model": Path(request["model"]), "reload_from": Path(request["reload_from"])}
    without_memory = arguments.pop("without_memory", False)
    try:
        with no_memory_for_a_second_model() if without_memory else contextlib.nullcontext():
            report = verify_engine(Request(**arguments))
    except RebindlintError as error:
        return {"error": str(error), "cause": type(error.__cause__).__name__}
    return {
        "findings": report.to_json(),
        "comparisons": {comparison.subject: comparison.equal for comparison in report.comparisons},
        "nan": {comparison.subject: comparison.nan_fraction for comparison in report.comparisons},
        "notes": list(report.notes),
        "operators": report.operators,
        "exit_code": report.exit_code,
        "text": report.text(),
    }


@contextlib.contextmanager
def no_memory_for_a_second_model() -> Iterator[None]:
    """The engine itself loads its model by another way."""
    import torch
    from vllm.model_executor import model_loader

    def get_model(**_: Any) -> None:
        raise torch.OutOfMemoryError("tried to allocate 30.00 GiB\nof which none is free")

    original, model_loader.get_model = model_loader.get_model, get_model
    try:
        yield
    finally:
        model_loader.get_model = original


def attributes() -> dict[str, int]:
    """Identities of what a watch, a capture or a fresh load might leave patched."""
    import torch

    owners: dict[str, Any] = {
        "Module": torch.nn.Module,
        "Parameter": torch.nn.Parameter,
        "Tensor": torch.Tensor,
        "torch": torch,
        "torch.utils": torch.utils,
    }
    for name, module in sorted(sys.modules.items()):
        if name == "vllm" or name.startswith("vllm."):
            owners[name] = module
            owners |= {
                f"{name}.{key}": value
                for key, value in vars(module).items()
                if isinstance(value, type) and value.__module__ == name
            }
    return {
        f"{name}.{key}": id(value)
        for name, owner in owners.items()
        for key, value in list(vars(owner).items())
        if callable(value) or isinstance(value, (property, bool, classmethod, staticmethod))
    }


def patched_by(request: dict[str, Any]) -> list[str]:
    """Attributes that differ when an engine that runs already has been verified. Starting one patches much itself."""
    from rebindlint.runtime.vllm import session
    from rebindlint.runtime.vllm.engine import running

    with running(request["model"]) as engine:
        hooks = _hooks(engine)
        before = attributes()
        engine.call(session.listen, "cpu")
        engine.generate()
        engine.call(session.capture)
        engine.call(session.reload, "reload_weights", request["reload_from"], False)
        engine.call(session.verify, request["reload_from"])
        engine.call(session.close)
        after = attributes()
        left = [] if _hooks(engine) == hooks else ["hooks of the model's modules"]
    return left + sorted(name for name, value in before.items() if after.get(name) != value)


def _hooks(engine: Any) -> list[int]:
    def count(worker: Any) -> int:
        modules = getattr(worker, "worker", worker).model_runner.get_model().modules()
        return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in modules)

    counts: list[int] = engine.call(count)
    return counts


def left_behind(before: dict[str, str]) -> list[str]:
    """What a process that verified engines has other than before: environment and switches of the engine."""
    import torch
    from vllm.model_executor.layers import utils

    left = [name for name in before.keys() | os.environ.keys() if before.get(name) != os.environ.get(name)]
    if utils.check_cpu_sgl_kernel.__module__ != utils.__name__:
        left.append("check_cpu_sgl_kernel")
    if torch.cpu._is_amx_tile_supported.__module__ != torch.cpu.__name__:
        left.append("_is_amx_tile_supported")
    return left


def main() -> None:
    requests = json.load(sys.stdin)
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    environment = dict(os.environ)
    outcomes: dict[str, Any] = {}
    for name, request in requests.items():
        outcomes[name] = outcome(request)
    outcomes["left behind"] = left_behind(environment)
    outcomes["patched"] = patched_by(next(iter(requests.values())))
    json.dump(outcomes, report)
    report.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
