"""One file a kind of hazard, or of code that only looks like one. ``# error RB101`` marks what is due, and nothing else is.
``# missed warning RB103`` is due as well, and not found yet; once it is, the mark has to change.

Each file is linted as a module of a package called ``vllm``, whose engine reloads layer by layer.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rebindlint.check import diagnose
from rebindlint.config import Config
from rebindlint.discover import discover
from rebindlint.execution import execute_hooks
from rebindlint.index import build_index
from rebindlint.registry import rules

KINDS = sorted((Path(__file__).parent / "kinds").glob("*.py"))
_MARK = re.compile(r"#\s*((?:error|warning) RB\d+(?:, (?:error|warning) RB\d+)*)\s*$")


@pytest.mark.parametrize("file", KINDS, ids=lambda file: file.stem)
def test_what_is_marked_is_found_and_nothing_else(file: Path, tmp_path: Path) -> None:
    text = file.read_text(encoding="utf-8")
    package = tmp_path / "vllm"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / file.name).write_text(text, encoding="utf-8")
    config = Config(root=tmp_path, jobs=1)
    index = build_index(discover(["vllm"], config, cwd=tmp_path).context, config)
    found = diagnose(execute_hooks(index, config, jobs=1).facts, rules(), index, config)
    marked = {
        (row, mark)
        for row, line in enumerate(text.splitlines(), 1)
        if (match := _MARK.search(line)) is not None
        for mark in match.group(1).split(", ")
    }
    assert {(d.place.start.row, f"{d.severity} {d.code}") for d in found} == marked
