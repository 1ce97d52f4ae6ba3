"""The command ``rebindlint run``: another command with the plugin switched on in every engine that it starts."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

import click

from rebindlint.model import RebindlintError
from rebindlint.runtime.merge import merge, show
from rebindlint.runtime.rank_files import read_ranks
from rebindlint.runtime.vllm.settings import DEFAULT_OUT, FRESH, MODE, OUT, RUN, carry_to_ray

__all__ = ["environment_for", "run_command"]

_PLUGINS: Final = "VLLM_PLUGINS"  # vLLM loads those that it lists, or all when it is not set
_PLUGIN: Final = "rebindlint"
_FORWARDED: Final = [
    number
    for name in ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGINT", "SIGQUIT")
    if (number := getattr(signal, name, None)) is not None
]
_FROM_TERMINALS: Final = ("SIGINT", "SIGQUIT")
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126  # as shells have it
_UNUSABLE: Final = 2


@click.command(
    name="run",
    short_help="Run a command and watch the reloads in it.",
    context_settings={"help_option_names": ["-h", "--help"], "allow_interspersed_args": False},
)
@click.option("--raise", "raises", is_flag=True, help="End the reload with an exception when it is not safe.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path(DEFAULT_OUT),
    show_default=True,
    envvar=OUT,
    show_envvar=True,
    metavar="DIR",
    help="Where each rank writes its report.",
)
@click.option(
    "--fresh",
    is_flag=True,
    help="Compare with a second model, loaded from the checkpoint of the reload; takes its memory twice.",
)
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--verbose", "-v", is_flag=True, help="Show notes and comparisons in full.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run_command(
    raises: bool, out: Path, fresh: bool, output_format: str, verbose: bool, command: tuple[str, ...]
) -> NoReturn:
    """Run COMMAND and watch the reloads of every vLLM engine in it, then print the merged report on standard error.

    The exit code is the command's own, and its signals are. `rebindlint report DIR` has an exit code for the findings.

        rebindlint run -- python train.py --lr 1e-6
    """
    made = _make_writable(out)
    run = secrets.token_hex(6)
    environment = environment_for(os.environ, out=out, run=run, raises=raises, fresh=fresh)
    status = _run(command, environment)
    _show(out, run, output_format, verbose)
    for folder in made:  # those that nobody wrote into
        with contextlib.suppress(OSError):
            folder.rmdir()
    _leave(status)


def _make_writable(folder: Path) -> list[Path]:
    """Ranks only say that they cannot write when a reload is over, hours later perhaps. Gives the folders that it made,
    innermost first, and exits when nobody could write there.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        for path in missing:
            with contextlib.suppress(OSError):
                path.rmdir()
        _fail(f"--out {folder}: reports cannot be written there: {error.strerror or error}", _UNUSABLE)
    return missing


def environment_for(
    environment: Mapping[str, str], *, out: Path, run: str, raises: bool, fresh: bool = False
) -> dict[str, str]:
    """The environment with the plugin switched on, also where it lists the plugins that vLLM may load."""
    changed = {**environment, MODE: "raise" if raises else "report", OUT: str(out.absolute()), RUN: run}
    if fresh:
        changed[FRESH] = "1"
    if _PLUGINS in changed:
        names = [name for name in changed[_PLUGINS].split(",") if name]
        changed[_PLUGINS] = ",".join(names if _PLUGIN in names else [*names, _PLUGIN])
    carry_to_ray(changed)
    return changed


def _run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """The command's exit code, negative for a signal. Exits like a shell when it cannot be started."""
    with _Signals() as signals:
        try:
            process = signals.process = subprocess.Popen(command, env=dict(environment))
        except FileNotFoundError:
            missing = command[0] if shutil.which(command[0]) is None else f"{command[0]}: its interpreter"
            _fail(f"{missing}: not found", _NOT_FOUND)
        except OSError as error:
            _fail(f"{command[0]}: {error.strerror or error}", _NOT_EXECUTABLE)
        signals.deliver()
        return process.wait()


class _Signals:
    """What is sent to us goes on to the command. A terminal sends Ctrl-C to both of us: that is the command's to
    answer.
    """

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []  # came before there was a command
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        # handlers, not SIG_IGN, which the command would inherit
        self._previous = {number: signal.signal(number, self._forward) for number in _FORWARDED}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def deliver(self) -> None:
        while self._early:
            self._forward(self._early.pop(0), None)

    def _forward(self, number: int, frame: FrameType | None) -> None:
        if self.process is None:
            self._early.append(number)
        elif not (signal.Signals(number).name in _FROM_TERMINALS and _in_foreground()):
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)


def _in_foreground() -> bool:
    """Are we, and so the command, who a terminal sends its signals to?"""
    try:
        terminal = os.open(os.ctermid(), os.O_RDONLY | os.O_NOCTTY)
    except (OSError, AttributeError):
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _show(out: Path, run: str, output_format: str, verbose: bool) -> None:
    sys.stdout.flush()
    try:
        ranks, _ = read_ranks(out, run)  # what cannot be read may be of another run
    except RebindlintError as error:
        sys.stderr.write(f"rebindlint: {error}: no rank wrote a report\n")
        return
    if not ranks:
        sys.stderr.write(
            f"rebindlint: no rank wrote a report in {out}: no vLLM engine in the command got as far as a model, "
            "or rebindlint is not installed in its environment\n"
        )
        return
    show(merge(ranks), output_format, verbose=verbose, err=True)


def _leave(status: int) -> NoReturn:
    """As the command ended: by the same signal, so that whoever waits for us sees the same."""
    sys.stdout.flush()
    sys.stderr.flush()
    if status < 0:
        with contextlib.suppress(ImportError, OSError, ValueError):  # a core dump would be ours, not the command's
            import resource

            resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        with contextlib.suppress(OSError, ValueError):  # KILL cannot be handled
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
        status = 128 - status
    sys.exit(status)


def _fail(message: str, status: int) -> NoReturn:
    sys.stderr.write(f"rebindlint: {message}\n")
    sys.exit(status)
