"""vLLM's own graph wrapper on a CPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import HERE, Engine


@pytest.mark.parametrize(
    ("kind", "options", "right"), [("llama", (), True), ("mla", (), True), ("mla", ("rebinding",), False)]
)
def test_the_engines_wrapper_captures_and_replays(
    engine: Engine, checkpoints: Path, kind: str, options: tuple[str, ...], right: bool
) -> None:
    folder = checkpoints / kind
    done = engine.run([str(HERE / "own_graphs.py"), str(folder / "v1"), str(folder / "v2"), *options])
    assert "RESULT " in done.stdout, done.stderr[-4000:]
    outcome = json.loads(done.stdout.rpartition("RESULT ")[2].splitlines()[0])
    assert outcome.pop("operators") > 100
    assert outcome == {"entries": 1, "before": True, "changed": True, "after": right}
