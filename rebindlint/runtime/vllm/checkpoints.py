"""Checkpoints on disk, read just far enough to refuse bad input before an engine is started. Needs no torch."""

from __future__ import annotations

import contextlib
import json
import struct
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rebindlint.model import RebindlintError

__all__ = ["Checkpoint", "expected_after_reload", "missing_tensors", "must_fit", "read_checkpoint"]

_LONGEST_HEADER: Final = 1 << 30  # bytes; a longer one is no safetensors file
_DISTINGUISHING: Final = (
    "architectures", "model_type", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "vocab_size", "tie_word_embeddings",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """``tensors`` are empty when the weights are in no format that can be read here."""

    folder: Path
    config: Mapping[str, Any]
    tensors: Mapping[str, Stored]


@dataclass(frozen=True, slots=True)
class Stored:
    """One tensor of a safetensors file; ``start`` is the byte of the file where its data begins."""

    dtype: str
    shape: tuple[int, ...]
    file: Path
    start: int
    nbytes: int

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


def read_checkpoint(folder: Path) -> Checkpoint:
    """Raises RebindlintError, in one line, for what is no checkpoint."""
    if not folder.is_dir():
        raise RebindlintError(f"{folder}: {'not a folder' if folder.exists() else 'no such folder'}")
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RebindlintError(f"{folder} is no checkpoint: it has no config.json") from None
    except (OSError, ValueError) as error:
        raise RebindlintError(f"{path} cannot be read: {error}") from error
    if not isinstance(config, dict) or not config.get("architectures"):
        raise RebindlintError(f"{path} names no architectures")
    files = sorted(folder.glob("*.safetensors"))
    if not files and not any(True for pattern in ("*.bin", "*.pt", "*.pth") for _ in folder.glob(pattern)):
        raise RebindlintError(f"{folder} is no checkpoint: it holds no weights")
    tensors: dict[str, Stored] = {}
    for file in files:
        tensors.update(_header(file))
    return Checkpoint(folder, config, tensors)


def _header(file: Path) -> dict[str, Stored]:
    try:
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > _LONGEST_HEADER:
                raise ValueError("its header is too long")
            header = json.loads(stream.read(length))
        found: dict[str, Stored] = {}
        for name, entry in header.items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                found[name] = Stored(str(entry["dtype"]), tuple(entry["shape"]), file, 8 + length + begin, end - begin)
        if any(tensor.start + tensor.nbytes > file.stat().st_size for tensor in found.values()):
            raise ValueError("it is cut off")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise RebindlintError(f"{file} is no safetensors file: {error}") from error
    return found


def must_fit(loaded: Checkpoint, reload_from: Checkpoint) -> None:
    """Raises RebindlintError when the second checkpoint is not one of the same architecture.

    That it has fewer tensors is no error: such a reload is what has to be judged.
    """
    for key in _DISTINGUISHING:
        ours, theirs = loaded.config.get(key), reload_from.config.get(key)
        if ours != theirs:
            raise RebindlintError(
                f"{reload_from.folder} has another architecture than {loaded.folder}: {key} is {theirs!r}, not {ours!r}"
            )
    ours, theirs = (_method(checkpoint) for checkpoint in (loaded, reload_from))
    if ours != theirs:
        raise RebindlintError(
            f"{reload_from.folder} is quantised otherwise than {loaded.folder}: "
            f"the one {_by(theirs)}, the other {_by(ours)}"
        )
    if not loaded.tensors or not reload_from.tensors:
        return
    for name, found in reload_from.tensors.items():
        expected = loaded.tensors.get(name)
        if expected is None:
            raise RebindlintError(f"{reload_from.folder} has a tensor that {loaded.folder} does not have: {name}")
        if (found.dtype, found.shape) != (expected.dtype, expected.shape):
            raise RebindlintError(f"{name} is {found} in {reload_from.folder} and {expected} in {loaded.folder}")


def _method(checkpoint: Checkpoint) -> str:
    settings = checkpoint.config.get("quantization_config")
    return str(settings.get("quant_method", "")) if isinstance(settings, dict) else ""


def missing_tensors(loaded: Checkpoint, reload_from: Checkpoint) -> list[str]:
    """Tensors that a reload does not bring along."""
    return sorted(loaded.tensors.keys() - reload_from.tensors.keys()) if reload_from.tensors else []


@contextlib.contextmanager
def expected_after_reload(loaded: Checkpoint, reload_from: Checkpoint) -> Iterator[Path]:
    """The folder of a checkpoint that holds what a correct reload leaves in the model: the second checkpoint, and what
    it lacks from the first.

    Nothing is copied but the tensors that are missing. Raises RebindlintError when the temporary folder cannot be
    written.
    """
    missing = missing_tensors(loaded, reload_from)
    if not missing:
        yield reload_from.folder
        return
    with contextlib.ExitStack() as stack:
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rebindlint-")))
            for entry in reload_from.folder.iterdir():
                if not entry.name.endswith(".index.json"):
                    (folder / entry.name).symlink_to(entry.resolve())
            files = {name: tensor.file.name for name, tensor in reload_from.tensors.items()}
            files |= dict.fromkeys(missing, _REST)
            _write(folder / _REST, {name: loaded.tensors[name] for name in missing})
            (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}))
        except OSError as error:
            raise RebindlintError(f"the expected weights cannot be put together: {error}") from error
        yield folder


_REST: Final = "tensors-not-reloaded.safetensors"


def _write(file: Path, tensors: Mapping[str, Stored]) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    position = 0
    for name, tensor in tensors.items():
        span = [position, position + tensor.nbytes]
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": span}
        position += tensor.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # data is aligned
    with file.open("wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            with tensor.file.open("rb") as source:
                source.seek(tensor.start)
                stream.write(source.read(tensor.nbytes))


def _by(method: str) -> str:
    return f"by {method}" if method else "not at all"
