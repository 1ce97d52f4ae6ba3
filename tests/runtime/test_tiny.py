from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from rebindlint.runtime.vllm.tiny import main


@pytest.fixture
def safetensors(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Takes its place: it is in the engine's environment only."""
    module = ModuleType("safetensors.torch")
    module.save_file = lambda tensors, file, metadata: Path(file).write_text(" ".join(sorted(tensors)))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "safetensors", ModuleType("safetensors"))
    monkeypatch.setitem(sys.modules, "safetensors.torch", module)
    return module


@pytest.mark.usefixtures("safetensors")
def test_a_tensor_is_left_out_of_the_second(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, [str(tmp_path), "--without", "lm_head.weight"])
    assert result.exit_code == 0, result.output
    first, second = (set((tmp_path / v / "model.safetensors").read_text().split()) for v in ("v1", "v2"))
    assert first - second == {"lm_head.weight"}


@pytest.mark.usefixtures("safetensors")
def test_a_wrong_name_is_one_line_and_leaves_nothing_behind(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, [str(tmp_path / "new"), "--without", "nosuch"])
    assert result.exit_code == 1
    assert result.stderr == "Error: the llama checkpoint has no tensor nosuch\n"
    assert list(tmp_path.iterdir()) == []


def test_without_safetensors_it_says_so_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    result = CliRunner().invoke(main, [str(tmp_path)])
    assert result.exit_code == 1
    assert result.stderr == "Error: checkpoints are written with safetensors, which vLLM brings along\n"
