"""Run the post-load hooks of a tiny engine twice on real tensors, as written and as rebindlint leaves them.

Usage: runtime_proof.py TREE [TREE...]     (each TREE is a folder that holds the package ``tiny_engine``)

For each layer: load weights, run the hook, capture one step (its operators are recorded together with the very storages that they
read, as a CUDA graph holds them), load other weights, run the hook again. Then the recorded step is replayed and compared with
an eager run.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from rebindlint.runtime.findings import Comparison
from rebindlint.runtime.guard import Guard

PACKAGE = "tiny_engine"
LAYERS = ("attention", "linear", "experts")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the check found for one layer of one tree.

    ``comparison`` is the replay against the eager run, both after the reload; ``abandoned`` are the tensors whose captured memory nothing
    but the recorded step keeps: a graph would read freed memory there, whatever the values say.
    """

    layer: str
    comparison: Comparison
    abandoned: tuple[str, ...]

    @property
    def safe(self) -> bool:
        return self.comparison.equal and not self.abandoned

    def __str__(self) -> str:
        if self.safe:
            return "replay equals the eager run"
        names = ", ".join(self.abandoned) or "none"
        if self.comparison.equal:
            return f"replay equals the eager run, but reads memory that nothing else keeps: {names}"
        difference = self.comparison.max_difference
        gap = f", off by up to {difference:.3g}" if difference is not None else ""
        return f"replay is stale{gap}; memory that nothing else keeps: {names}"


def verdicts(tree: Path) -> list[Verdict]:
    """Judge every layer of the engine in ``tree``.

    Raises ImportError when the package is not there, RuntimeError when a step could not be judged.
    """
    with _imported(tree) as model_module:
        return [_judge(model_module, layer) for layer in LAYERS]


@contextlib.contextmanager
def _imported(tree: Path) -> Iterator[ModuleType]:
    """The engine of this very tree: another tree's modules of the same name are forgotten before and after."""
    _forget()
    sys.path.insert(0, str(tree))
    importlib.invalidate_caches()
    try:
        yield importlib.import_module(f"{PACKAGE}.model")
    finally:
        sys.path.remove(str(tree))
        _forget()


def _forget() -> None:
    for name in [n for n in sys.modules if n == PACKAGE or n.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]


def _judge(engine: Any, layer: str) -> Verdict:
    model = engine.TinyModel()
    old, new = (engine.random_checkpoint(seed, engine.TinyModel()) for seed in (1, 2))
    model.load_weights(old)
    guard = Guard(model)
    guard.capture(_step(layer))
    with guard.reloading():
        model.load_weights(new)
    report = guard.verify()
    guard.close()
    replays = [c for c in report.comparisons if c.subject.startswith("replayed step against")]
    if len(replays) != 1:
        raise RuntimeError(f"{layer} could not be judged:\n{report.text(verbose=True)}")
    abandoned = sorted(f.tensor.removeprefix("model.") for f in report.with_code("RT101"))
    return Verdict(layer, replays[0], tuple(abandoned))


def _step(layer: str) -> Callable[[torch.nn.Module], torch.Tensor]:
    rows = torch.linspace(-1, 1, 3 * 8).view(3, 8)
    latent = torch.linspace(-1, 1, 5 * 8).view(5, 8).sin()

    inputs = (rows.view(3, 2, 4), latent) if layer == "attention" else (rows,)

    def step(model: Any) -> torch.Tensor:
        result = getattr(model, layer)(*inputs)
        assert isinstance(result, torch.Tensor)
        return result

    return step


def main(arguments: list[str]) -> int:
    if not arguments:
        print(__doc__)
        return 2
    for argument in arguments:
        print(f"{argument}:")
        for verdict in verdicts(Path(argument)):
            print(f"  {verdict.layer:10} {verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
