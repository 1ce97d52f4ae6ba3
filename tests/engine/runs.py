"""Verifies several reloads in one process of the engine's environment, one engine after the other.

Reads requests by name from stdin, as JSON, and prints for each what was found or why it could not work; also what the
process has other afterwards.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def outcome(request: dict[str, Any]) -> dict[str, Any]:
    from rebindlint.runtime.vllm.request import Request

    arguments = {**request, "model": Path(request["model"]), "reload_from": Path(request["reload_from"])}
    with contextlib.ExitStack() as engine_is:
        if arguments.pop("without_memory", False):
            engine_is.enter_context(no_memory_for_a_second_model())
        if arguments.pop("rebinding", False):
            engine_is.enter_context(latent_attention_that_rebinds())
        return _outcome(Request(**arguments))


def _outcome(request: Any) -> dict[str, Any]:
    from rebindlint.model import RebindlintError
    from rebindlint.runtime.vllm.driver import verify_engine

    try:
        report = verify_engine(request)
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


@contextlib.contextmanager
def latent_attention_that_rebinds() -> Iterator[None]:
    """As rebinding_mla.py has it, and afterwards as released."""
    from vllm.model_executor.layers.attention import mla_attention

    original = mla_attention.replace_parameter
    importlib.import_module("rebinding_mla")
    mla_attention.replace_parameter = sys.modules["rebinding_mla"].bind_anew
    try:
        yield
    finally:
        mla_attention.replace_parameter = original


Attributes = dict[str, dict[str, Any]]


def attributes() -> Attributes:
    """What a watch, a capture or a fresh load might leave patched, owner by owner."""
    import torch

    owners: dict[str, Any] = {
        "Module": torch.nn.Module,
        "Parameter": torch.nn.Parameter,
        "Tensor": torch.Tensor,
        "torch": torch,
        "torch.cuda": torch.cuda,
        "torch.distributed": torch.distributed,
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
        name: {
            key: value
            for key, value in list(vars(owner).items())
            if callable(value) or isinstance(value, (property, bool, classmethod, staticmethod))
        }
        for name, owner in owners.items()
    }


def instance_attributes(engine: Any) -> Attributes:
    """What might be left on the objects of one engine: hooks, and functions that hide those of their classes."""

    def found(worker: Any) -> Attributes:
        worker = getattr(worker, "worker", worker)
        model = worker.model_runner.get_model()
        objects = {"worker": worker, "runner": worker.model_runner}
        objects |= {f"model.{name}": module for name, module in model.named_modules()}
        hidden = {
            name: {key: "hidden" for key in vars(owner) if callable(vars(owner)[key]) and hasattr(type(owner), key)}
            for name, owner in objects.items()
        }
        hooks = {
            f"hooks of {name}": (len(module._forward_hooks), len(module._forward_pre_hooks))
            for name, module in model.named_modules()
        }
        return {**hidden, "": hooks}

    (result,) = engine.call(found)
    attributes: Attributes = result
    return attributes


def changed(before: Attributes, after: Attributes) -> list[str]:
    """Attributes of the owners in ``before`` that are others in ``after``, gone or new. The engine goes on importing, so
    that new owners mean nothing.
    """
    missing = object()
    return sorted(
        f"{owner}.{key}"
        for owner, values in before.items()
        for key in values.keys() | after.get(owner, {}).keys()
        if not _same(values.get(key, missing), after.get(owner, {}).get(key, missing))
    )


def _same(value: Any, other: Any) -> bool:
    return value is other or (isinstance(value, (str, tuple)) and bool(value == other))


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
    json.dump(outcomes, report)
    report.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
