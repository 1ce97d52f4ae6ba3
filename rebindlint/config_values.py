"""The keys of ``[tool.rebindlint]`` and what may stand behind each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from rebindlint.version import satisfies

__all__ = ["HELPER_KINDS", "OUTPUT_FORMATS", "PARSERS", "RELOADS", "parse_selector"]

OUTPUT_FORMATS = ("text", "concise", "json")
RELOADS = ("direct", "layerwise", "sleep", "all")
HELPER_KINDS = ("rebinds", "copies", "copies-if")

_SELECTOR = re.compile(r"^(?:ALL|[A-Z]{1,3}[0-9]{0,3})$")
_DOTTED = re.compile(r"^[^\W\d]\w*(?:\.[^\W\d]\w*)*$")
_HOOK = re.compile(r"^(?:[^\W\d]\w*(?:\.[^\W\d]\w*)*:)?[^\W\d]\w*(?:\.[^\W\d]\w*)*$")
_TARGET = re.compile(r"^vllm\s*==\s*\d+\.\d+(?:\.\d+)*$")  # the one engine whose helper is called from outside its tree


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {_kind(value)}")
    return value


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be a string, not {_kind(value)}")
    return value


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f"must be a list of strings, not {_kind(value)}")
    for item in value:
        if not isinstance(item, str):
            raise ValueError(f"must be a list of strings, but holds {_kind(item)}")
    return tuple(value)


def parse_selector(value: str) -> str:
    """A code, a prefix of codes or ``ALL``, in capitals. Raises ValueError for anything else."""
    code = value.strip().upper()
    if not _SELECTOR.match(code):
        raise ValueError(f"holds `{value}`, which is neither a rule code nor a prefix of one")
    return code


def _selectors(value: object) -> tuple[str, ...]:
    return tuple(parse_selector(item) for item in _strings(value))


def _choice(*choices: str) -> Callable[[object], str]:
    def parse(value: object) -> str:
        if value not in choices or not isinstance(value, str):
            raise ValueError(f"must be one of {', '.join(choices)}, not {value!r}")
        return value

    return parse


def _matching(pattern: re.Pattern[str], example: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if not pattern.match(value):
            raise ValueError(f"holds `{value}`, which does not read like `{example}`")
        return value

    return parse


_hook = _matching(_HOOK, "pkg.mod:Class.method")
_dotted = _matching(_DOTTED, "pkg.mod.function")
_target = _matching(_TARGET, "vllm==0.26")


def _table(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"must be a table, not {_kind(value)}")
    return value


def _per_file_ignores(value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((pattern, _selectors(codes)) for pattern, codes in _table(value).items())


def _helpers(value: object) -> tuple[tuple[str, str], ...]:
    kind = _choice(*HELPER_KINDS)
    found = []
    for name, text in _table(value).items():
        try:
            found.append((_dotted(name), kind(text)))
        except ValueError as error:
            raise ValueError(f"for `{name}` {error}" if _DOTTED.match(name) else str(error)) from error
    return tuple(found)


def _requirement(value: object) -> str:
    text = _string(value)
    satisfies("0", text)
    return text


def _jobs(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("must be a whole number of processes, 0 for one a core")
    return value


def _kind(value: object) -> str:
    names = {bool: "a boolean", str: "a string", int: "a number", float: "a number", list: "a list", dict: "a table"}
    return names.get(type(value), "a date or time")


PARSERS: Mapping[str, Callable[[object], object]] = {
    "select": _selectors,
    "extend-select": _selectors,
    "ignore": _selectors,
    "extend-ignore": _selectors,
    "per-file-ignores": _per_file_ignores,
    "fixable": _selectors,
    "unfixable": _selectors,
    "extend-safe-fixes": _selectors,
    "extend-unsafe-fixes": _selectors,
    "exclude": _strings,
    "extend-exclude": _strings,
    "force-exclude": _boolean,
    "respect-gitignore": _boolean,
    "src": _strings,
    "cache-dir": _string,
    "fix": _boolean,
    "unsafe-fixes": _boolean,
    "output-format": _choice(*OUTPUT_FORMATS),
    "required-version": _requirement,
    "target-version": lambda value: _target(_string(value)),
    "reload": _choice(*RELOADS),
    "hooks": lambda value: tuple(_hook(item) for item in _strings(value)),
    "helpers": _helpers,
    "allocators": lambda value: tuple(_dotted(item) for item in _strings(value)),
    "jobs": _jobs,
}
