"""Checkpoints that are refused before an engine is started."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from rebindlint.model import RebindlintError
from rebindlint.runtime.command import verify
from rebindlint.runtime.vllm.checkpoints import expected_after_reload, missing_tensors, must_fit, read_checkpoint

CONFIG = {"architectures": ["LlamaForCausalLM"], "hidden_size": 4, "num_hidden_layers": 1}


def write(folder: Path, tensors: dict[str, list[int]], fill: int = 0, **config: object) -> Path:
    """A checkpoint of 32-bit floats whose bytes are all ``fill``."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({**CONFIG, **config}))
    header, position = {}, 0
    for name, shape in tensors.items():
        size = 4
        for length in shape:
            size *= length
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [position, position + size]}
        position += size
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes([fill]) * position)
    return folder


@pytest.fixture
def first(tmp_path: Path) -> Path:
    return write(tmp_path / "first", {"a": [4], "b": [2, 4]}, fill=1)


def test_shapes_and_types_are_read(first: Path) -> None:
    tensors = read_checkpoint(first).tensors
    assert {name: str(tensor) for name, tensor in tensors.items()} == {"a": "F32[4]", "b": "F32[2, 4]"}


def _no_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def _no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def _cut_off(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


def _text(folder: Path) -> None:
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1")


def _broken_config(folder: Path) -> None:
    (folder / "config.json").write_text("{")


def _no_architecture(folder: Path) -> None:
    (folder / "config.json").write_text("{}")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_no_config, "is no checkpoint: it has no config.json"),
        (_no_weights, "is no checkpoint: it holds no weights"),
        (_cut_off, "is no safetensors file: it is cut off"),
        (_text, "is no safetensors file: its header is too long"),
        (_broken_config, "config.json cannot be read"),
        (_no_architecture, "names no architectures"),
    ],
)
def test_what_is_no_checkpoint_is_said_in_one_line(first: Path, damage: Callable[[Path], None], message: str) -> None:
    damage(first)
    with pytest.raises(RebindlintError, match=message) as caught:
        read_checkpoint(first)
    assert "\n" not in str(caught.value)


def test_a_missing_folder_and_a_file(tmp_path: Path) -> None:
    with pytest.raises(RebindlintError, match="no such folder"):
        read_checkpoint(tmp_path / "nothing")
    (tmp_path / "file").touch()
    with pytest.raises(RebindlintError, match="not a folder"):
        read_checkpoint(tmp_path / "file")


@pytest.mark.parametrize(
    ("tensors", "config", "message"),
    [
        ({"a": [4], "b": [2, 4]}, {"hidden_size": 8}, "hidden_size is 8, not 4"),
        ({"a": [4], "b": [2, 4]}, {"architectures": ["Other"]}, "architectures is"),
        (
            {"a": [4], "b": [2, 4]},
            {"quantization_config": {"quant_method": "gptq"}},
            "the one by gptq, the other not at all",
        ),
        ({"a": [4], "b": [4, 2]}, {}, "b is F32.4, 2. in .* and F32.2, 4. in"),
        ({"a": [4], "b": [2, 4], "c": [1]}, {}, "has a tensor that .* does not have: c"),
    ],
)
def test_checkpoints_of_different_architectures(
    first: Path, tmp_path: Path, tensors: dict[str, list[int]], config: dict[str, object], message: str
) -> None:
    second = write(tmp_path / "second", tensors, 0, **config)
    with pytest.raises(RebindlintError, match=message):
        must_fit(read_checkpoint(first), read_checkpoint(second))


def test_a_partial_reload_leaves_the_rest(first: Path, tmp_path: Path) -> None:
    loaded, partial = read_checkpoint(first), read_checkpoint(write(tmp_path / "second", {"b": [2, 4]}, fill=2))
    must_fit(loaded, partial)
    assert missing_tensors(loaded, partial) == ["a"]
    with expected_after_reload(loaded, partial) as folder:
        expected = read_checkpoint(folder)
        index = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
        contents = {}
        for name, tensor in expected.tensors.items():
            assert index[name] == tensor.file.name
            contents[name] = set(tensor.file.read_bytes()[tensor.start : tensor.start + tensor.nbytes])
        assert contents == {"a": {1}, "b": {2}}
        assert not any(tensor.start % 8 for name, tensor in expected.tensors.items() if name == "a")
    assert not folder.exists()


def test_a_full_reload_needs_no_other_folder(first: Path) -> None:
    checkpoint = read_checkpoint(first)
    with expected_after_reload(checkpoint, checkpoint) as folder:
        assert folder == first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "{first}"], "--model also needs --reload-from DIR"),
        (["--model", "{first}", "--reload-from", "{first}-none"], "first-none: no such folder"),
        (["--model", "{first}", "--demo"], "say either --demo or --case"),
        (["--model", "{first}", "--reload-from", "{first}", "--path", "sideways"], "'sideways' is not one of"),
    ],
)
def test_bad_input_is_one_line_and_code_two(first: Path, arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(verify, [argument.format(first=first) for argument in arguments])
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output
