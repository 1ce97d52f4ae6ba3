"""The installed version, and whether it satisfies a ``required-version``."""

from __future__ import annotations

import re

__all__ = ["installed_version", "satisfies"]

_CLAUSE = re.compile(r"^\s*(?P<operator>==|!=|>=|<=|>|<|~=)?\s*(?P<version>\d+(?:\.\d+)*)\s*$")


def installed_version() -> str:
    """The version of the distribution, or ``0.0.0`` when the source tree is used without being installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("rebindlint")
    except PackageNotFoundError:
        return "0.0.0"


def satisfies(version: str, specifier: str) -> bool:
    """Whether ``version`` fulfils every comma-separated clause of ``specifier`` (a bare version means ``==``).

    Raises ValueError when a clause is not an operator followed by a release number.
    """
    clauses = [_CLAUSE.match(clause) for clause in specifier.split(",")]
    if not all(clauses):
        raise ValueError(f"`{specifier}` is not a version requirement such as `>=0.1,<1`")
    have = _release(version)
    return all(_holds(have, clause["operator"] or "==", clause["version"]) for clause in clauses if clause)


def _holds(have: tuple[int, ...], operator: str, wanted: str) -> bool:
    want = _release(wanted)
    match operator:
        case "==":
            return have == want
        case "!=":
            return have != want
        case ">=":
            return have >= want
        case "<=":
            return have <= want
        case ">":
            return have > want
        case "<":
            return have < want
        case _:  # ~=: at least this one, and equal in all but its last component
            series = tuple(int(part) for part in wanted.split("."))[:-1]
            return have >= want and have[: len(series)] == series


def _release(version: str) -> tuple[int, ...]:
    """The release segment, padded so that ``1`` and ``1.0`` are equal."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    parts = [int(part) for part in match[0].split(".")] if match else [0]
    return tuple(parts + [0] * (6 - len(parts)))
