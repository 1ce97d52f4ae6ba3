"""The options of ``rebindlint verify`` that start the real engine, and what they do. Needs neither torch nor vllm."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from rebindlint.runtime.vllm.child import verify_in_child
from rebindlint.runtime.vllm.request import PATH_NAMES, Request

if TYPE_CHECKING:
    from rebindlint.runtime.report import Report

__all__ = ["ENGINE_OPTIONS", "engine_options", "verify_with_engine"]

ENGINE_OPTIONS: Final = ("model", "reload_from", "path", "layers", "tensor_parallel", "plain_linears")

F = TypeVar("F", bound=Callable[..., Any])


def engine_options(command: F) -> F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS: Final = (
    click.option(
        "--model", type=click.Path(path_type=Path), metavar="DIR", help="Start vLLM on this checkpoint and verify a reload."
    ),
    click.option(
        "--reload-from", type=click.Path(path_type=Path), metavar="DIR", help="The checkpoint to reload from (with --model)."
    ),
    click.option(
        "--path", type=click.Choice(PATH_NAMES), default="reload_weights", show_default=True, help="How the engine reloads."
    ),
    click.option("--layers", default="", metavar="GLOB", help="Report tensors of these layers only: model.layers.0*"),
    click.option("--tensor-parallel", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Ranks."),
    click.option(
        "--plain-linears",
        is_flag=True,
        help="On a CPU keep linear weights as tensors, as on a GPU, not packed behind native handles.",
    ),
)  # fmt: skip


def verify_with_engine(
    *,
    model: Path,
    reload_from: Path | None,
    path: str,
    layers: str,
    device: str,
    tensor_parallel: int,
    plain_linears: bool,
) -> Report:
    """Raises RebindlintError as `driver.verify_engine` does, click.UsageError when the second checkpoint is missing."""
    if reload_from is None:
        if path != "process-twice":
            raise click.UsageError("--model also needs --reload-from DIR")
        reload_from = model
    request = Request(model, reload_from, path, layers, device, tensor_parallel, plain_linears)
    with _Progress() as progress:
        return verify_in_child(request, progress)


class _Progress:
    """One line on stderr that says what is being done; on a terminal it is overwritten and at last removed."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()

    def __enter__(self) -> _Progress:
        return self

    def __call__(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text} ..." if self._terminal else f"{text} ...\n")
        sys.stderr.flush()

    def __exit__(self, *_: object) -> None:
        if self._terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
