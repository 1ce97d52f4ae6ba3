"""Which modules of a tree import which, from their text alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rebindlint.index.tree import Index

__all__ = ["imports_in", "reaches"]

_IMPORT = re.compile(rb"^(?:from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]+)|import[ \t]+([^\n#]+))", re.M)


def imports_in(raw: bytes, module: str, is_package: bool) -> Iterator[str]:
    """The dotted names that a module imports at its top level, and those that may be modules among what it takes from there."""
    for match in _IMPORT.finditer(raw):
        dots, base, names, plain = (part.decode() if part is not None else "" for part in match.groups())
        if plain:
            yield from (entry.split(" as ")[0].strip() for entry in plain.split(","))
            continue
        if dots:
            parts = module.split(".")
            drop = len(dots) - 1 if is_package else len(dots)
            base = ".".join([*parts[: len(parts) - drop], *([base] if base else [])])
        yield base
        for entry in names.strip("()").split(","):
            name = entry.split("#")[0].split(" as ")[0].strip()
            if name:
                yield f"{base}.{name}"


def reaches(index: Index, start: str, goal: str) -> bool:
    """Whether importing ``start`` imports ``goal``, by the imports at the top level of modules and their packages."""
    seen: set[str] = set()
    stack = [start]
    while stack:
        name = stack.pop()
        if name == goal and name != start:
            return True
        if name in seen:
            continue
        seen.add(name)
        stack.extend(index.imports_of(name))
        parent = name.rpartition(".")[0]
        if parent in index.sources and not goal.startswith(f"{parent}."):
            stack.append(parent)
    return False
