"""The command line: ``rebindlint [PATHS]`` checks; ``explain`` and ``rules`` tell, ``hooks`` lists, ``verify`` runs."""

from __future__ import annotations

import atexit
import errno
import gc
import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

import click

from rebindlint.model import RebindlintError
from rebindlint.options import EXCLUDING, FILES, FIXING, PROTOCOL, REPORTING, RUNNING, SELECTING
from rebindlint.version import installed_version

__all__ = ["cli", "main"]

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
_PATH = click.Path(readable=False)  # what cannot be read is one failure among others, not the end of the run
# What writing to a stream may meet; files that are written say so themselves.
_OUTPUT_LOST = frozenset({errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG})
_RUNTIME = {
    "report": ("rebindlint.runtime.merge", "report_command"),
    "run": ("rebindlint.runtime.launch", "run_command"),
    "verify": ("rebindlint.runtime.command", "verify"),
}


class _DefaultsToCheck(click.Group):
    """A group whose arguments belong to ``check`` unless the first one names a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {"-h", "--help", "-V", "--version", *self.list_commands(ctx)}
        return super().parse_args(ctx, args if args and args[0] in own else ["check", *args])

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_RUNTIME])

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in _RUNTIME:  # imported when asked for, as the runtime half is
            module, attribute = _RUNTIME[name]
            command: click.Command = getattr(importlib.import_module(module), attribute)
            return command
        return super().get_command(ctx, name)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage("rebindlint", "[check] [OPTIONS] [PATHS]...")
        formatter.write_usage("rebindlint", "explain CODE [PATH:LINE]", prefix="       ")
        formatter.write_usage("rebindlint", "hooks [OPTIONS] [PATHS]...", prefix="       ")
        formatter.write_usage("rebindlint", "rules [OPTIONS]", prefix="       ")
        formatter.write_usage("rebindlint", "verify [OPTIONS]", prefix="       ")
        formatter.write_usage("rebindlint", "run [OPTIONS] -- COMMAND...", prefix="       ")
        formatter.write_usage("rebindlint", "report [OPTIONS] [DIR]", prefix="       ")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        check.format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


@click.group(cls=_DefaultsToCheck, context_settings=_CONTEXT, no_args_is_help=False)
@click.version_option(installed_version(), "-V", "--version", prog_name="rebindlint", message="%(prog)s %(version)s")
def cli() -> None:
    """Find, explain and fix tensor-rebinding hazards in the weight-reload hooks of LLM engines.

    PATHS are Python files and folders (the current one by default); `-` reads standard input. A path that is
    named like a command is written ./rules. Exit status: 0 nothing found, 1 hazards are left, 2 something could not be done.
    """


def _refuse_mistyped_command(paths: Sequence[str]) -> None:
    """``rebindlint explian RB101`` names no files; saying of each that it is missing would not help."""
    if paths and not os.path.lexists(paths[0]):
        from difflib import get_close_matches

        known = cli.list_commands(click.get_current_context())
        for meant in get_close_matches(paths[0], known, n=1, cutoff=0.75):
            raise RebindlintError(f"{paths[0]}: no such file, folder or command (did you mean `rebindlint {meant}`?)")


@cli.command(context_settings=_CONTEXT)
@click.argument("paths", nargs=-1, type=_PATH)
@FIXING
@SELECTING
@REPORTING
@FILES
@RUNNING
def check(paths: tuple[str, ...], **options: object) -> NoReturn:
    """Lint files and folders (the default command)."""
    _refuse_mistyped_command(paths)
    from rebindlint.command import Options
    from rebindlint.command import check as lint

    try:
        status = lint(Options.of(paths, options))
    except KeyboardInterrupt:  # here, because click puts an empty line before it
        _leave("interrupted", 130)
    sys.exit(status)


@cli.command(context_settings=_CONTEXT, short_help="Print the page of a rule, or how a finding came about.")
@click.argument("code")
@click.argument("place", required=False)
@PROTOCOL
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@RUNNING
@click.option("-v", "--verbose", is_flag=True, help="Also show the decisions that lie off the way to the statement.")
def explain(code: str, place: str | None, **options: object) -> None:
    """Print the page of a rule, such as RB101, attribute-rebind or RT101; with a PLACE how the finding there came about.

    PLACE is path:line, as a report prints it. Exit status: 0 explained, 2 there is no such rule or finding.
    """
    from rebindlint.explain_command import explain as tell

    try:
        tell(code, place, options)
    except KeyboardInterrupt:
        _leave("interrupted", 130)


@cli.command(context_settings=_CONTEXT, short_help="List every hook with its cells and verdicts.")
@click.argument("paths", nargs=-1, type=_PATH)
@PROTOCOL
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@EXCLUDING
@RUNNING
@click.option("-q", "--quiet", is_flag=True, help="Print the table and nothing else.")
@click.option("-v", "--verbose", is_flag=True, help="Tell what was done, and show tracebacks of internal errors.")
def hooks(paths: tuple[str, ...], **options: object) -> NoReturn:
    """List every hook: where it stands, the cells that it writes, and the verdict under each reload protocol.

    Exit status: 0 also when there are hazards, 2 something could not be done.
    """
    from rebindlint.audit_command import list_hooks

    try:
        status = list_hooks(paths or (".",), options)
    except KeyboardInterrupt:
        _leave("interrupted", 130)
    sys.exit(status)


@cli.command(context_settings=_CONTEXT, short_help="List the rules.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def rules(output_format: str) -> None:
    """List the rules: code, name, whether it has a fix, and what it says."""
    from rebindlint import rule_pages

    rule_pages.list_rules(output_format)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs a command and exits; whatever goes wrong is one line on standard error."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    atexit.register(gc.freeze)  # the system takes the memory back at once; to free object by object takes a second
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a character that the terminal lacks is shown as its escape
            stream.reconfigure(errors="backslashreplace")
    try:
        status = cli.main(list(arguments), prog_name="rebindlint", standalone_mode=False)
        sys.stdout.flush()  # here, where a failure can still be told
    except (KeyboardInterrupt, click.Abort):
        _leave("interrupted", 130)
    except BrokenPipeError:
        _close_pipe()
        sys.exit(1)
    except click.ClickException as error:
        _leave(error.format_message(), 2)
    except RebindlintError as error:
        _leave(str(error), 2)
    except Exception as error:  # the only place that can tell the user in one line
        if isinstance(error, OSError) and error.errno in _OUTPUT_LOST:
            _close_pipe()
            _leave(f"the output cannot be written: {error.strerror}", 2)
        if "-v" in arguments or "--verbose" in arguments:
            traceback.print_exc()
        _leave(f"internal error: {type(error).__name__}: {error} (run with --verbose for the traceback)", 2)
    sys.exit(status if isinstance(status, int) else 0)


def _leave(message: str, status: int) -> NoReturn:
    try:
        sys.stderr.write("rebindlint: " + " ".join(message.split()) + "\n")
    except BrokenPipeError:
        _close_pipe()
    except OSError:  # nobody can be told; the exit status is left
        pass
    sys.exit(status)


def _open_closed_streams() -> None:
    """A stream that the caller has closed (``>&-``) is None; what would be written to it is wanted by nobody."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 — it stays open to the end


def _close_pipe() -> None:
    """The reader is gone; what is still buffered must not fail again when Python exits."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
