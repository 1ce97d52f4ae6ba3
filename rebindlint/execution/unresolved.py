"""Calls that could not be entered, and what was assumed of them instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from rebindlint.execution.places import place_of
from rebindlint.index.modules import Module
from rebindlint.model import Diagnostic, Place, Severity

__all__ = ["Assumption", "Calls", "Unresolved", "merged", "notes_of", "resolved_places"]

_DOTTED = re.compile(r"\w+(\.\w+)*")


class Assumption(StrEnum):
    """What a call that could not be entered is taken to do."""

    SAME = "gives the same result in both runs and touches no tensor"
    HARMLESS = "leaves the tensors that it is given alone"
    HOLDS = "makes an object that holds what it is given"
    WRITES = "writes into the first tensor that it is given"
    ALLOCATES = "returns a newly allocated tensor"
    MAYBE_ALLOCATES = "returns a newly allocated tensor, if it is a tensor at all"


Calls = dict[tuple[str, Module, ast.AST, Assumption], int]  # callee, module and node of the call -> how often


@dataclass(frozen=True, slots=True)
class Unresolved:
    """``text`` is the callee as the source has it, ``callee`` what is known of where it leads; ``count`` is over all paths of all hooks."""

    place: Place
    text: str
    callee: str
    assumed: tuple[Assumption, ...]
    count: int = 1


def resolved_places(calls: Mapping[tuple[str, Module, ast.AST, Assumption], int]) -> tuple[Unresolved, ...]:
    """The calls of one hook with their places instead of syntax nodes."""
    found = (
        Unresolved(place_of(module, node), _text(node, callee), callee, (assumed,), count)
        for (callee, module, node, assumed), count in calls.items()
    )
    return merged(found)


def merged(calls: Iterable[Unresolved]) -> tuple[Unresolved, ...]:
    """Each place once, in the order of the source; several paths may have assumed different things there."""
    known: dict[Place, Unresolved] = {}
    for call in calls:
        before = known.get(call.place)
        if before is not None:
            assumed = tuple(a for a in Assumption if a in before.assumed or a in call.assumed)
            call = Unresolved(call.place, call.text, before.callee, assumed, before.count + call.count)
        known[call.place] = call
    return tuple(known[place] for place in sorted(known))


def _text(node: ast.AST, callee: str) -> str:
    text = ast.unparse(node.func) if isinstance(node, ast.Call) else callee
    return text if len(text) <= 60 and "\n" not in text else callee


def notes_of(calls: Iterable[Unresolved]) -> tuple[Diagnostic, ...]:
    """One note a call: where it stands, and what was assumed of it."""
    return tuple(Diagnostic("RB004", "unresolved-call", _message(call), Severity.NOTE, call.place) for call in calls)


def _message(call: Unresolved) -> str:
    leads = f" (`{call.callee}`)" if call.callee != call.text and _DOTTED.fullmatch(call.callee) else ""
    assumed = ", or on another path that it ".join(call.assumed)
    return f"`{call.text}`{leads} could not be entered; assumed that it {assumed}"
