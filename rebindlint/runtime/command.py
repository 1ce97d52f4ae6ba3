"""The command ``rebindlint verify``. Importing this module needs no torch: the command line mounts it always."""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

import click

from rebindlint.model import RebindlintError
from rebindlint.runtime import TORCH_IS_MISSING, torch_is_missing
from rebindlint.runtime.report import Unfinished
from rebindlint.runtime.sources.options import run_sources, sources_options
from rebindlint.runtime.vllm.options import ENGINE_OPTIONS, engine_options, verify_with_engine

__all__ = ["verify"]

_EXIT_BROKEN = 2


@click.command(
    name="verify",
    context_settings={"help_option_names": ["-h", "--help"]},
    short_help="Prove by replay whether a reload breaks a captured step.",
)
@click.option("--demo", is_flag=True, help="Show a guilty and a fixed model (needs torch alone).")
@click.option("--case", "reference", metavar="PKG.MODULE:FUNCTION", help="Verify the case that this function makes.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="cuda: a real CUDA graph; cpu: recorded operators; auto: cuda where there is one.",
)
@click.option("--verbose", "-v", is_flag=True, help="Show notes in full.")
@engine_options
@sources_options
@click.pass_context
def verify(
    ctx: click.Context,
    /,
    demo: bool,
    reference: str | None,
    output_format: str,
    device: str,
    verbose: bool,
    **others: Any,
) -> None:
    """Capture a step, reload weights, and prove whether the captured step still works.

    Exit codes: 0 nothing found (or the demonstration went as it should), 1 findings, 2 could not work.
    """
    engine = {name: others.pop(name) for name in ENGINE_OPTIONS}
    sources = others
    if [demo, reference is not None, engine["model"] is not None, sources["sources"] is not None].count(True) != 1:
        raise click.UsageError(
            "say either --demo or --case PKG.MODULE:FUNCTION or --model DIR --reload-from DIR2 or --sources TREE"
        )
    _refuse_strays(ctx, "--model", engine)
    _refuse_strays(ctx, "--sources", sources)
    if sources["sources"] is not None and device == "cuda":
        raise click.UsageError("--sources runs on a CPU: --device cuda does not go with it")
    if sources["sources"] is None and torch_is_missing():
        click.echo(f"rebindlint: {TORCH_IS_MISSING}", err=True)
        ctx.exit(_EXIT_BROKEN)
    try:
        if sources["sources"] is not None:  # runs in a process of its own, whose Python has torch
            ctx.exit(run_sources(**sources, output_format=output_format, verbose=verbose))
        if engine["model"] is not None:
            report = verify_with_engine(**engine, device=device)
            _print(report, output_format, verbose)
            ctx.exit(report.exit_code)
        code = _demo(device, output_format, verbose) if demo else _case(reference or "", device, output_format, verbose)
    except RebindlintError as error:
        if isinstance(error, Unfinished):
            _print(error.report, output_format, verbose)
        click.echo(f"rebindlint: {error}", err=True)
        code = _EXIT_BROKEN
    ctx.exit(code)


def _refuse_strays(ctx: click.Context, mode: str, options: dict[str, Any]) -> None:
    """An option of a mode that was not asked for would do nothing, and say nothing."""
    if options[mode.lstrip("-")] is not None:
        return
    for name in options:
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} goes with {mode}")


def _case(reference: str, device: str, output_format: str, verbose: bool) -> int:
    from rebindlint.runtime.case import run_case

    with contextlib.redirect_stdout(sys.stderr):  # what the host's code prints is no part of the report
        report = run_case(reference, device=device)
    _print(report, output_format, verbose)
    return report.exit_code


def _demo(device: str, output_format: str, verbose: bool) -> int:
    from rebindlint.runtime.demo import run_demo

    guilty, fixed = run_demo(device)
    if output_format == "json":
        click.echo(json.dumps([*guilty.to_json(), *fixed.to_json()], indent=2, ensure_ascii=False))
    else:
        click.echo(_GUILTY)
        click.echo(guilty.text(verbose=verbose))
        click.echo(_FIXED)
        click.echo(fixed.text(verbose=verbose))
    if guilty.ok or fixed.exit_code:
        raise RebindlintError(
            "the demonstration failed: the guilty model must be convicted and the fixed one acquitted"
        )
    return 0


_GUILTY = """\
1. A post-load hook that binds new tensors
   The step is captured, weights are loaded again, the hook runs again and binds w_uk_t and w_uv to new memory.
   The captured step still holds the old memory.
"""
_FIXED = """
2. The same hook, writing into the tensors that are there
"""


def _print(report: Any, output_format: str, verbose: bool) -> None:
    click.echo(
        json.dumps(report.to_json(), indent=2, ensure_ascii=False)
        if output_format == "json"
        else report.text(verbose=verbose)
    )
