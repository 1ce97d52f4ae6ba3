"""From the text of a file to a module, or to the reason why there is none."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from rebindlint.discover import read_source
from rebindlint.index.modules import Module
from rebindlint.model import RebindlintError

if TYPE_CHECKING:
    from rebindlint.discover import Source

__all__ = ["parse"]


def parse(source: Source, failures: dict[str, tuple[int, int, str]]) -> Module | None:
    """The module in a file; ``failures`` gets where and why there is none."""
    try:
        text = read_source(source)
        if _too_deep(text):
            failures[source.shown] = (1, 1, "nested or chained too deeply to be analysed")
            return None
        tree = ast.parse(text)
    except RebindlintError as error:
        failures[source.shown] = (1, 1, str(error))
        return None
    except SyntaxError as error:
        failures[source.shown] = (error.lineno or 1, error.offset or 1, error.msg)
        return None
    except (RecursionError, MemoryError, ValueError) as error:
        failures[source.shown] = (1, 1, f"could not be parsed ({error})")
        return None
    return Module(source.module, source.shown, source.path.stem == "__init__", tree, text)


def _too_deep(text: str) -> bool:
    """A cheap measure against generated files on which a recursive parser would exhaust the stack."""
    depth = deepest = 0
    if len(text) < 200_000 and text.count("(") + text.count("[") < 20_000 and text.count("+") < 900:
        return False
    for character in text:
        if character in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in ")]}":
            depth -= 1
    return deepest > 190 or any(line.count("+") > 2_000 for line in text.splitlines())
