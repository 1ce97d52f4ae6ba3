"""Finds the rules and fixers: one class a file, found by name, so that a new rule touches new files only."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache
from types import ModuleType
from typing import TypeVar

from rebindlint.model import RebindlintError
from rebindlint.plugin import Fixer, Rule

__all__ = ["fixers", "page", "rules"]

_T = TypeVar("_T", Rule, Fixer)


@cache
def rules() -> tuple[Rule, ...]:
    """Every rule, by code."""
    return tuple(sorted((rule for rule, _ in _rules()), key=lambda rule: rule.code))


@cache
def fixers() -> dict[str, Fixer]:
    """The fixer of each code that has one."""
    return {fixer.code: fixer for fixer, _ in _instances("rebindlint.fixers", Fixer)}  # type: ignore[type-abstract]


def page(code: str) -> str:
    """The page of a rule: its module's docstring, in Markdown. Raises RebindlintError for an unknown code."""
    for rule, module in _rules():
        if rule.code == code:
            return inspect.cleandoc(module.__doc__ or "")
    raise RebindlintError(f"unknown rule {code}")


@cache
def _rules() -> tuple[tuple[Rule, ModuleType], ...]:
    return _instances("rebindlint.rules", Rule)  # type: ignore[type-abstract]


def _instances(package_name: str, kind: type[_T]) -> tuple[tuple[_T, ModuleType], ...]:
    """One instance of each class of that kind which a module of the package defines itself."""
    package = importlib.import_module(package_name)
    found: list[tuple[_T, ModuleType]] = []
    for entry in sorted(pkgutil.iter_modules(package.__path__), key=lambda e: e.name):
        module = importlib.import_module(f"{package_name}.{entry.name}")
        classes = [
            c
            for c in vars(module).values()
            if inspect.isclass(c) and issubclass(c, kind) and c.__module__ == module.__name__
        ]
        if len(classes) != 1:
            raise RebindlintError(f"{module.__name__} must define one {kind.__name__}, not {len(classes)}")
        found.append((classes[0](), module))
    return tuple(found)
