"""The runtime codes: one module ``rtNNN`` each, whose docstring is the code's page. Needs no torch."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from rebindlint.model import RebindlintError, Severity

__all__ = ["Code", "code", "codes", "page"]

_MODULE: Final = re.compile(r"rt\d{3}")


@dataclass(frozen=True, slots=True)
class Code:
    """``oracle`` is what decides: addresses, replay, fresh, junk or selftest. ``static`` are the rules of the same
    kind.
    """

    code: str
    name: str
    severity: Severity
    oracle: str
    summary: str
    static: tuple[str, ...] = ()


@cache
def codes() -> dict[str, Code]:
    """Every runtime code by its number."""
    package = importlib.import_module("rebindlint.runtime")
    names = sorted(m.name for m in pkgutil.iter_modules(package.__path__) if _MODULE.fullmatch(m.name))
    found: list[Code] = [importlib.import_module(f"rebindlint.runtime.{name}").CODE for name in names]
    return {entry.code: entry for entry in found}


def code(number: str) -> Code:
    """Raises RebindlintError for a number that does not exist."""
    try:
        return codes()[number]
    except KeyError:
        raise RebindlintError(f"unknown runtime code {number}; known are {', '.join(codes())}") from None


def page(number: str) -> str:
    """The code's page in Markdown. Raises RebindlintError for a number that does not exist."""
    module = importlib.import_module(f"rebindlint.runtime.{code(number).code.lower()}")
    return inspect.cleandoc(module.__doc__ or "")
