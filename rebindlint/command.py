"""What the commands do once their arguments are understood."""

from __future__ import annotations

import difflib
import io
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rebindlint.catalogue import catalogue
from rebindlint.collector import collector_at_rest
from rebindlint.config import Config, load_config, shown_file
from rebindlint.discover import STDIN, decode_source
from rebindlint.interrupt import interrupts_for_this_process_only
from rebindlint.model import RebindlintError, Severity
from rebindlint.pipeline import Outcome, Request, run
from rebindlint.progress import ProgressBar
from rebindlint.report import Style, report, use_colour
from rebindlint.report.style import counted
from rebindlint.selection import check_selectors
from rebindlint.texts import Changed, write_output

__all__ = ["Options", "check", "configured"]

_OF_CONFIG = frozenset(Config.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Options:
    """The options of ``check`` that are no keys of the configuration; ``given`` holds those that are."""

    paths: tuple[str, ...]
    given: Mapping[str, object]
    diff: bool = False
    fix_only: bool = False
    output_file: Path | None = None
    statistics: bool = False
    exit_zero: bool = False
    exit_non_zero_on_fix: bool = False
    quiet: bool = False
    verbose: bool = False
    stdin_filename: str | None = None
    affected: bool = False
    show_unresolved: bool = False
    config_file: Path | None = None
    isolated: bool = False
    no_cache: bool = False

    @classmethod
    def of(cls, paths: tuple[str, ...], options: Mapping[str, object]) -> Options:
        given = {name: value for name, value in options.items() if name in _OF_CONFIG}
        rest = {name: value for name, value in options.items() if name not in _OF_CONFIG}
        return cls(paths or (".",), given, **rest)  # type: ignore[arg-type]  # the option declarations give the types

    @property
    def reads_stdin(self) -> bool:
        return STDIN in self.paths


@collector_at_rest()
def check(options: Options) -> int:
    """Lints and reports. Returns the exit status; raises RebindlintError when nothing can be done."""
    started = time.perf_counter()
    _refuse_contradictions(options)
    config = _config(options)
    stdin, encoding = _read_stdin() if options.reads_stdin else (None, "utf-8")
    fixing = config.fix or options.fix_only or options.diff
    request = Request(
        options.paths,
        config,
        fix=fixing,
        unsafe=config.unsafe_fixes,
        write=not options.diff and not options.reads_stdin,
        affected=options.affected,
        show_unresolved=options.show_unresolved,
        cache=not options.no_cache,
        stdin_text=stdin,
        stdin_filename=options.stdin_filename,
    )
    with interrupts_for_this_process_only(), ProgressBar(enabled=not options.quiet) as progress:
        outcome = run(request, progress)
    for failure in outcome.failures:
        _say(failure)
    if options.diff:
        sys.stdout.write("".join(_diff(change) for change in outcome.changed))
    elif options.reads_stdin and fixing:
        sys.stdout.flush()
        text = outcome.changed[0].after if outcome.changed else stdin or ""
        sys.stdout.buffer.write(text.encode(encoding))
    if not (options.diff or options.fix_only):
        _write_report(outcome, options, config, to_stderr=options.reads_stdin and fixing)
    _say_what_was_done(outcome, options, time.perf_counter() - started)
    sys.stdout.flush()
    return _status(outcome, options)


def _refuse_contradictions(options: Options) -> None:
    if options.reads_stdin and len(options.paths) > 1:
        raise RebindlintError("standard input (`-`) cannot be linted together with files")
    if options.stdin_filename is not None and not options.reads_stdin:
        raise RebindlintError("--stdin-filename needs `-` as the path")
    if options.diff and options.given.get("output_format") == "json":
        raise RebindlintError(
            "--diff prints a diff: it cannot be combined with --output-format json, whose fixes say the same"
        )
    for option, given in (("--statistics", options.statistics), ("--output-file", options.output_file is not None)):
        for silent in [
            name for name, on in (("--diff", options.diff), ("--fix-only", options.fix_only)) if on and given
        ]:
            raise RebindlintError(f"{option} needs a report, and {silent} writes none")


def _config(options: Options) -> Config:
    anchor = (options.stdin_filename or ".") if options.reads_stdin else options.paths[0]
    return configured(anchor, options.given, config_file=options.config_file, isolated=options.isolated)


def configured(anchor: str, given: Mapping[str, object], *, config_file: object, isolated: object) -> Config:
    """The configuration for ``anchor`` with the options ``given`` on top. Raises RebindlintError for a selector that names no rule."""
    known = [entry.code for entry in catalogue()]
    config = load_config(
        [anchor], config_file=config_file if isinstance(config_file, Path) else None, isolated=bool(isolated)
    )
    try:
        check_selectors(config, known)
    except RebindlintError as error:
        file = shown_file(config.file, Path.cwd()) if config.file is not None else "configuration"
        raise RebindlintError(f"{file}: {error}") from error
    config = config.but(given)
    check_selectors(config, known)
    return config


def _read_stdin() -> tuple[str, str]:
    if sys.stdin is None:
        raise RebindlintError("standard input is closed")
    try:
        return decode_source(sys.stdin.buffer.read())
    except (SyntaxError, UnicodeError, LookupError) as error:
        raise RebindlintError(f"standard input cannot be decoded: {error}") from error


def _write_report(outcome: Outcome, options: Options, config: Config, *, to_stderr: bool) -> None:
    stream = sys.stderr if to_stderr else sys.stdout
    style = Style(
        config.output_format,
        unsafe=config.unsafe_fixes,
        statistics=options.statistics,
        quiet=options.quiet,
        colour=options.output_file is None and use_colour(stream),
    )
    text = report(outcome.diagnostics, outcome.read, style, files=outcome.files)
    if options.output_file is None:
        stream.write(text)
    else:
        write_output(options.output_file, text)


def _diff(change: Changed) -> str:
    """A unified diff that ``patch`` and ``git apply`` take; line ends are those of the file."""
    before, after = (io.StringIO(text, newline="\n").readlines() for text in (change.before, change.after))
    lines = difflib.unified_diff(before, after, f"a/{change.source.shown}", f"b/{change.source.shown}")
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def _say_what_was_done(outcome: Outcome, options: Options, seconds: float) -> None:
    if options.verbose:
        for line in outcome.log:
            _say(line)
        for diagnostic in outcome.refused:
            _say(f"{diagnostic.place}: the fix of {diagnostic.code} was put back")
        _say(f"{counted(outcome.files, 'file')} in {seconds:.2f} s")
    if options.quiet:
        return
    if outcome.fixed:
        verb = "would fix" if options.diff else "fixed"
        _say(f"{verb} {counted(len(outcome.fixed), 'hazard')} in {counted(len(outcome.changed), 'file')}")
    if outcome.refused:
        fixes = counted(len(outcome.refused), "fix", "fixes")
        _say(
            f"{fixes} put back: the finding was still there or another one in its place, or the file would have been broken"
        )
    if not outcome.files and not outcome.failures:
        _say("no Python files under the given paths")


def _status(outcome: Outcome, options: Options) -> int:
    if outcome.failures:
        return 2
    if options.exit_zero:
        return 0
    if options.diff:
        return 1 if outcome.changed else 0
    if options.exit_non_zero_on_fix and outcome.fixed:
        return 1
    if options.fix_only:
        return 0
    return 1 if any(d.severity is not Severity.NOTE for d in outcome.diagnostics) else 0


def _say(line: str) -> None:
    sys.stderr.write(f"rebindlint: {line}\n")
