"""What rules there are, read from their files without importing them.

A rule imports LibCST, which takes a quarter of a second. Telling which codes exist, and what their pages say, must not: it is
asked by every run, also by those that find their result in the cache.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rebindlint.model import RebindlintError
from rebindlint.suppress import FIXED_CODES

__all__ = ["Entry", "catalogue"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A rule: ``page`` is its module's docstring, in Markdown; ``fix`` tells whether something fixes its findings."""

    code: str
    name: str
    page: str
    fix: bool

    @property
    def summary(self) -> str:
        """The first sentence below the page's first heading."""
        for paragraph in self.page.split("\n\n"):
            text = " ".join(line.strip() for line in paragraph.strip().splitlines() if not line.startswith("#"))
            if text:
                sentence, stop, _ = text.partition(". ")
                return sentence + stop.rstrip()
        return ""


@cache
def catalogue() -> tuple[Entry, ...]:
    """Every rule, by code. Raises RebindlintError when the installation has none."""
    fixed = FIXED_CODES | {_constants(tree)["code"] for tree in _modules("rebindlint.fixers")}
    entries = []
    for tree in _modules("rebindlint.rules"):
        constants = _constants(tree)
        page = inspect.cleandoc(ast.get_docstring(tree, clean=False) or "")
        entries.append(Entry(constants["code"], constants["name"], page, constants["code"] in fixed))
    if not entries:
        raise RebindlintError("no rules are installed: install the package (`pip install -e .` in its source tree)")
    return tuple(sorted(entries, key=lambda entry: entry.code))


def _modules(package: str) -> list[ast.Module]:
    """The modules of a package that define a class with a code."""
    spec = importlib.util.find_spec(package)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    files = sorted(file for folder in folders for file in Path(folder).glob("*.py"))
    trees = [ast.parse(file.read_text(encoding="utf-8"), str(file)) for file in files]
    return [tree for tree in trees if "code" in _constants(tree)]


def _constants(tree: ast.Module) -> dict[str, str]:
    """The strings that the module's class binds in its body, such as ``code = "RB101"``."""
    return {
        target.id: statement.value.value
        for cls in tree.body
        if isinstance(cls, ast.ClassDef)
        for statement in cls.body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
        for target in statement.targets
        if isinstance(target, ast.Name) and isinstance(statement.value.value, str)
    }
