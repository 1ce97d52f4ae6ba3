"""The process that runs the tree: ``python -P child.py REQUEST``. It prints nothing of its own; results are JSON lines.

It runs in the environment that has vLLM's dependencies, which need not have rebindlint or what rebindlint itself needs.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any


def main(request: dict[str, Any]) -> None:
    """``tree``; ``capability`` of the GPU to stand in for; ``methods``; ``done``, pairs of method and variant to leave out; ``results``, the file to append to. One
    line for the import, one when a method begins, and two for each of its scenarios.
    """
    with open(request["results"], "a", encoding="utf-8") as results:

        def tell(**fields: Any) -> None:
            results.write(json.dumps(fields) + "\n")
            results.flush()

        try:
            _adopt_rebindlint()
            engine = _start(request["tree"], tuple(request["capability"]))
        except BaseException as error:  # also SystemExit: importing runs the tree's code
            tell(event="unusable", error=_first_line(error))
            return
        tell(event="imported", version=str(sys.modules["vllm"].__version__), torch=sys.modules["torch"].__version__)
        for method in request["methods"]:
            tell(event="method", method=method)
            _run(method, engine, request["done"], tell)
        tell(event="end")


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__


def _adopt_rebindlint() -> None:
    """Make the package that this file belongs to importable, and nothing that lies beside it."""
    if "rebindlint" in sys.modules:
        return
    package = Path(__file__).resolve().parents[2]
    spec = importlib.util.spec_from_file_location(
        "rebindlint", package / "__init__.py", submodule_search_locations=[str(package)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import rebindlint from {package}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["rebindlint"] = module
    spec.loader.exec_module(module)


def _start(tree: str, capability: tuple[int, int]) -> Any:
    sys.path.insert(0, tree)
    stand_ins = importlib.import_module("rebindlint.runtime.sources.stand_ins")
    stand_ins.install_modules()
    vllm = importlib.import_module("vllm")
    found = Path(vllm.__file__ or "").resolve()
    if Path(tree).resolve() not in found.parents:
        raise ImportError(f"vllm was imported from {found.parent} and not from the tree")
    stand_ins.install(capability)
    return importlib.import_module("rebindlint.runtime.sources.engine").Engine()


def _run(method: str, engine: Any, done: list[list[str]], tell: Any) -> None:
    facts = importlib.import_module("rebindlint.runtime.sources.facts")
    reload = importlib.import_module("rebindlint.runtime.sources.reload")
    methods = importlib.import_module("rebindlint.runtime.sources.methods")
    for scenario in methods.scenarios(method):
        if [method, scenario.variant] not in done:
            tell(event="begin", method=method, variant=scenario.variant)
            tell(event="scenario", facts=facts.to_json(reload.run_scenario(method, scenario, engine)))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
