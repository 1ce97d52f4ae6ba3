"""The static half on literal sources: files written, discovered, indexed and executed in this process."""

from __future__ import annotations

import tempfile
import textwrap
from collections.abc import Iterable
from pathlib import Path

from rebindlint.config import Config
from rebindlint.discover import discover
from rebindlint.execution import execute_hooks
from rebindlint.execution.run import Executed
from rebindlint.index import Index, build_index
from rebindlint.model import Rebinding

__all__ = ["brief", "executed", "facts", "in_method", "in_module", "index_of", "write_files"]

_IMPORTS = """\
import functools
import torch
from torch import nn
from torch.nn import Parameter
"""
_METHOD = """
class Method:
    def create_weights(self, layer):
        layer.register_parameter("weight", Parameter(torch.empty(4, 4), requires_grad=False))
        layer.register_parameter("scale", Parameter(torch.empty(4), requires_grad=False))

    def process_weights_after_loading(self, layer: nn.Module) -> None:
{body}

    def apply(self, layer, x):
        return layer.weight, layer.scale, {reads}
"""
_MODULE = """
class Layer(nn.Module):
    def __init__(self, config) -> None:
        super().__init__()
        self.config = config
        self.weight = Parameter(torch.empty(4, 4))
{init}

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
{body}

    def forward(self, x):
        return self.weight, {reads}
"""


def write_files(root: Path, files: dict[str, str]) -> Path:
    """Each text under its name; ``.py`` is added where there is no suffix, and the margin is taken away."""
    for name, text in files.items():
        file = root / (name if "." in Path(name).name else f"{name}.py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text), encoding="utf-8")
    return root


def index_of(root: Path, config: Config | None = None, /, **files: str) -> Index:
    """The index of the files written below ``root``, which is an import root of its own."""
    write_files(root, files)
    config = config or Config(root=root, jobs=1)
    return build_index(discover(["."], config, cwd=root).context, config)


def executed(config: Config | None = None, /, **files: str) -> Executed:
    """What executing every hook of these files comes to."""
    with tempfile.TemporaryDirectory() as folder:
        config = config or Config(jobs=1)
        return execute_hooks(index_of(Path(folder), config, **files), config, jobs=1)


def facts(**files: str) -> list[Rebinding]:
    return list(executed(**files).facts)


def brief(found: Iterable[Rebinding], *, protocols: bool = False) -> set[str]:
    """``hazard binding path`` of each fact, with the protocols on demand."""
    return {
        " ".join([f.hazard, f.binding, f.cell.path, *(["+".join(sorted(f.protocols))] if protocols else [])])
        for f in found
    }


def in_method(body: str, *, top: str = "", reads: str = "layer.w") -> str:
    """A module whose quantisation method's hook has this body; the layer's ``weight`` and ``scale`` are registered."""
    return _IMPORTS + textwrap.dedent(top) + _METHOD.format(body=_indented(body), reads=reads)


def in_module(body: str, *, init: str = "pass", top: str = "", reads: str = "self.w", members: str = "") -> str:
    """A module whose layer has this hook, on live tensors; ``weight`` is its parameter."""
    text = _IMPORTS + textwrap.dedent(top) + _MODULE.format(body=_indented(body), init=_indented(init), reads=reads)
    return text + "\n" + textwrap.indent(textwrap.dedent(members), " " * 4)


def _indented(body: str) -> str:
    return textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8)
