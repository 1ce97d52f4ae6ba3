"""The options that the commands share, in groups, and how their values are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import click

__all__ = ["EXCLUDING", "FILES", "FIXING", "PROTOCOL", "REPORTING", "RUNNING", "SELECTING"]

_F = TypeVar("_F", bound=Callable[..., object])


def _codes(ctx: click.Context, parameter: click.Parameter, values: Sequence[str]) -> tuple[str, ...] | None:
    """Comma lists, given once or often; None when the option was not given."""
    from rebindlint.config_values import parse_selector

    parts = [part for value in values for part in value.split(",") if part.strip()]
    if values and not parts:  # an empty variable of a script; no rule would be asked
        raise click.BadParameter("holds no rule code")
    try:
        return tuple(parse_selector(part) for part in parts) if values else None
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _patterns(ctx: click.Context, parameter: click.Parameter, values: Sequence[str]) -> tuple[str, ...] | None:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip()) if values else None


def _target_version(ctx: click.Context, parameter: click.Parameter, value: str | None) -> object:
    from rebindlint.config_values import PARSERS

    try:
        return None if value is None else PARSERS["target-version"](value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _options(*declarations: Callable[[_F], _F]) -> Callable[[_F], _F]:
    def decorate(function: _F) -> _F:
        for declaration in reversed(declarations):
            function = declaration(function)
        return function

    return decorate


FIXING = _options(
    click.option("--fix/--no-fix", default=None, help="Apply the safe fixes and report what is left."),
    click.option("--unsafe-fixes/--no-unsafe-fixes", default=None, help="Count unsafe fixes as applicable."),
    click.option(
        "--diff", is_flag=True, help="Write nothing; print what --fix would change; exit 1 when there is something."
    ),
    click.option("--fix-only", is_flag=True, help="Apply fixes, but do not report what is left. Implies --fix."),
)
PROTOCOL = click.option(
    "--reload",
    type=click.Choice(["direct", "layerwise", "sleep", "all"]),
    default=None,
    help="Only hazards under this reload protocol.",
)
SELECTING = _options(
    click.option(
        "--select", multiple=True, callback=_codes, metavar="CODES", help="Rules to ask, by code or prefix, or ALL."
    ),
    click.option("--ignore", multiple=True, callback=_codes, metavar="CODES", help="Rules to leave out."),
    click.option(
        "--extend-select", multiple=True, callback=_codes, metavar="CODES", help="Rules to ask besides those selected."
    ),
    PROTOCOL,
    click.option(
        "--target-version",
        callback=_target_version,
        metavar="NAME==VERSION",
        help="Release whose helpers fixes may call.",
    ),
)
REPORTING = _options(
    click.option(
        "--output-format", type=click.Choice(["text", "concise", "json"]), default=None, help="text by default."
    ),
    click.option("-o", "--output-file", type=click.Path(path_type=Path), metavar="FILE", help="Write the report here."),
    click.option(
        "--show-unresolved",
        is_flag=True,
        help="Also list calls that could not be entered, and what was assumed of them.",
    ),
    click.option("--statistics", is_flag=True, help="Count the findings of each rule instead of listing them."),
    click.option("-e", "--exit-zero", is_flag=True, help="Exit with 0 even when hazards are left."),
    click.option(
        "--exit-non-zero-on-fix", is_flag=True, help="Exit with 1 when something was fixed, even if nothing is left."
    ),
    click.option("-q", "--quiet", is_flag=True, help="Print findings and nothing else."),
    click.option("-v", "--verbose", is_flag=True, help="Tell what was done, and show tracebacks of internal errors."),
)
EXCLUDING = _options(
    click.option(
        "--exclude",
        multiple=True,
        callback=_patterns,
        metavar="PATTERNS",
        help="Leave these out, instead of the defaults.",
    ),
    click.option(
        "--extend-exclude", multiple=True, callback=_patterns, metavar="PATTERNS", help="Leave these out, too."
    ),
    click.option(
        "--force-exclude/--no-force-exclude",
        default=None,
        help="Leave excluded and ignored files out even when they are named.",
    ),
    click.option(
        "--respect-gitignore/--no-respect-gitignore", default=None, help="Leave out what git ignores (the default)."
    ),
)
FILES = _options(
    EXCLUDING,
    click.option("--stdin-filename", metavar="FILE", help="What standard input is called."),
    click.option(
        "--affected",
        is_flag=True,
        help="Also report hooks of other files that run into hazards through the given ones.",
    ),
)
RUNNING = _options(
    click.option(
        "--config",
        "config_file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Read this pyproject.toml or rebindlint.toml.",
    ),
    click.option("--isolated", is_flag=True, help="Read no configuration file."),
    click.option("-n", "--no-cache", is_flag=True, help="Neither read nor write cached results."),
    click.option("-j", "--jobs", type=click.IntRange(min=0), default=None, help="Processes to use; 0 for one a core."),
)
