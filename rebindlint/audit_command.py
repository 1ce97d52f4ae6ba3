"""What ``rebindlint hooks`` does once its arguments are understood."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping

from rebindlint.audit import audit
from rebindlint.collector import collector_at_rest
from rebindlint.command import configured
from rebindlint.discover import STDIN
from rebindlint.interrupt import interrupts_for_this_process_only
from rebindlint.model import RebindlintError
from rebindlint.pipeline import Request, find_files, silent_about_linted_code
from rebindlint.progress import ProgressBar
from rebindlint.report.audit import render, render_json
from rebindlint.report.style import counted, use_colour

__all__ = ["list_hooks"]


@collector_at_rest()
def list_hooks(paths: tuple[str, ...], options: Mapping[str, object]) -> int:
    """Prints the table. Returns the exit status: 2 when a path could not be used, else 0."""
    started = time.perf_counter()
    given = dict(options)
    output_format, quiet, verbose = given.pop("output_format"), bool(given.pop("quiet")), bool(given.pop("verbose"))
    file, isolated = given.pop("config_file"), given.pop("isolated")
    given.pop("no_cache")  # nothing of this is cached
    if STDIN in paths:
        raise RebindlintError("hooks reads files and folders, not standard input")
    config = configured(paths[0], given, config_file=file, isolated=isolated)
    discovered = find_files(Request(paths, config))
    for failure in discovered.failures:
        _say(failure)
    with (
        silent_about_linted_code(),
        interrupts_for_this_process_only(),
        ProgressBar(enabled=not quiet) as progress,
    ):
        found = audit(discovered, config, progress)
    if output_format == "json":
        sys.stdout.write(render_json(found))
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        sys.stdout.write(render(found, colour=use_colour(sys.stdout), width=width, quiet=quiet))
    if verbose:
        executions = counted(sum(hook.executions for hook in found.hooks), "path")
        _say(f"{counted(len(found.hooks), 'hook')} along {executions} in {time.perf_counter() - started:.2f} s")
    sys.stdout.flush()
    return 2 if discovered.failures else 0


def _say(line: str) -> None:
    sys.stderr.write(f"rebindlint: {line}\n")
