"""The options of ``rebindlint verify`` that belong to a run on sources."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from rebindlint.runtime.sources.launch import TIME_LIMIT
from rebindlint.runtime.sources.methods import METHODS

__all__ = ["run_sources", "sources_options"]

_F = TypeVar("_F", bound=Callable[..., object])


def sources_options(function: _F) -> _F:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


_OPTIONS = (
    click.option(
        "--sources",
        type=click.Path(path_type=Path),
        metavar="TREE",
        help="Run the hooks of an unpacked or checked-out vLLM on a CPU, without its binary; judges addresses only.",
    ),
    click.option(
        "--methods",
        multiple=True,
        metavar="NAMES",
        help=f"With --sources, which: {', '.join(METHODS)}, or all (the default).",
    ),
    click.option(
        "--python",
        metavar="FILE",
        default="",
        help="With --sources, the Python of an environment with vLLM's dependencies (this one by default).",
    ),
    click.option(
        "--time-limit",
        type=click.FloatRange(min=0, min_open=True),
        default=TIME_LIMIT,
        show_default=True,
        metavar="SECONDS",
        help="With --sources, for the whole tree.",
    ),
)


def run_sources(
    sources: Path, methods: tuple[str, ...], python: str, time_limit: float, output_format: str, verbose: bool
) -> int:
    """Print the report and give back the exit code. Raises RebindlintError when there is nothing to report."""
    from rebindlint.runtime.sources.report import verify_sources

    report = verify_sources(sources, methods, python=python, time_limit=time_limit, progress=_told)
    _told("")
    if output_format == "json":
        click.echo(json.dumps(report.to_json(), indent=2, ensure_ascii=False))
    else:
        click.echo(report.text(verbose=verbose))
    if not report.ran:
        click.echo("rebindlint: not one of the layers could be reloaded, so nothing was judged", err=True)
    return report.exit_code


def _told(text: str) -> Any:
    """What is being done, on a line of its own that the next one replaces; "" wipes it away."""
    if sys.stderr.isatty():
        click.echo(f"\r\033[K{text}{' ...' if text else ''}", err=True, nl=False)
