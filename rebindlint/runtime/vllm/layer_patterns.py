"""Patterns of layers: whether one matches the path of a tensor."""

from __future__ import annotations

from fnmatch import fnmatchcase

__all__ = ["matches"]


def matches(path: str, pattern: str) -> bool:
    """Does the pattern match the path, the path without its root's name, or the path of an enclosing module?"""
    short = path.partition(".")[2]
    return any(fnmatchcase(name, candidate) for name in (path, short) for candidate in (pattern, pattern + ".*"))
