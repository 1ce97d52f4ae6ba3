"""Runs in the engine's environment: the same verifications several times over in one process, in any order.

    python rounds.py < REQUEST

The request, as JSON, has ``cases`` (by name, as runs.py takes them), how many ``rounds`` of each, and the ``seed`` of
their order. Prints a list of what came out, in the order in which they ran: ``name``, the outcome as runs.py has it,
and ``patched``, the attributes of torch, of the engine and of the model that are others after the verification than
before it.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


def _runs() -> ModuleType:
    return importlib.import_module("runs")  # beside this script


@contextmanager
def compared() -> Iterator[list[str]]:
    """Compare from the moment when an engine has started to the one before it is shut down: starting one patches much
    itself. The names of what differs are in the list afterwards.
    """
    driver: Any = importlib.import_module("rebindlint.runtime.vllm.driver")
    runs = _runs()
    patched: list[str] = []
    original = driver._verified

    def watched(engine: Any, *args: Any) -> Any:
        engine.generate()  # the engine's own lazy attributes
        before, instances = runs.attributes(), runs.instance_attributes(engine)
        try:
            return original(engine, *args)
        finally:
            patched.extend(runs.changed(before, runs.attributes()))
            patched.extend(runs.changed(instances, runs.instance_attributes(engine)))

    driver._verified = watched
    try:
        yield patched
    finally:
        driver._verified = original


def main() -> None:
    runs = _runs()
    request = json.load(sys.stdin)
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    importlib.import_module("vllm.model_executor.layers.attention")  # sets variables of its own
    environment = dict(os.environ)
    order = [name for name in request["cases"] for _ in range(request["rounds"])]
    random.Random(request["seed"]).shuffle(order)
    outcomes = []
    for name in order:
        with compared() as patched:
            outcome = runs.outcome(request["cases"][name])
        outcomes.append({"name": name, **outcome, "patched": patched + runs.left_behind(environment)})
    json.dump(outcomes, report)
    report.flush()
    os._exit(0)  # native threads of the engine may hang on the way out


if __name__ == "__main__":
    main()
