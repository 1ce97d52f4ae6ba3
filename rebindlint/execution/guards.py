"""Which condition kept the second run from what the first one did."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rebindlint.execution.interpreter import Condition, Interpreter, Site
from rebindlint.execution.twice import Outcome
from rebindlint.index.hooks import LAYER_NAMES
from rebindlint.index.modules import Module, descend

__all__ = ["asks_flag", "decided_otherwise", "guard_of"]

_ASKED = frozenset({"self", *LAYER_NAMES, "getattr", "hasattr"})
_LAYOUT = frozenset({"dtype", "shape", "ndim", "device", "dim", "size", "stride", "is_contiguous"})


def guard_of(m: Interpreter, outcome: Outcome, site: Site | None) -> tuple[ast.AST, Module] | None:
    """The innermost condition that led the first run to ``site`` and the second elsewhere."""
    if site is None:
        return None
    first = outcome.first_conditions or []
    for position in reversed(list(_differing(m, first, m.conditions))):
        _, _, node, module = first[position]
        if position < site.after and _governs(m, node, module, site):
            return node, module
    return None


def asks_flag(test: ast.AST, name: str) -> bool:
    """Whether a condition asks for attributes of the objects at hand, and neither for the attribute ``name`` nor for a layout."""
    nodes = descend(test)
    read = {n.attr for n in nodes if isinstance(n, ast.Attribute)}
    read |= {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return (
        bool(read)
        and name not in read
        and not read & _LAYOUT
        and {n.id for n in nodes if isinstance(n, ast.Name)} <= _ASKED
    )


def decided_otherwise(m: Interpreter, outcome: Outcome) -> set[int]:
    """Identities of the conditions that the second run decided otherwise, whatever hangs on them."""
    first = outcome.first_conditions or []
    return {id(first[position][2]) for position in _differing(m, first, m.conditions)}


def _differing(m: Interpreter, first: list[Condition], second: list[Condition]) -> Iterator[int]:
    """Positions in the first run of conditions that the same occasion in the second run decided otherwise."""
    later = {occasion: answer for occasion, (_, answer, _, _) in zip(_occasions(second), second, strict=True)}
    for position, (occasion, (_, answer, node, _)) in enumerate(zip(_occasions(first), first, strict=True)):
        if later.get(occasion, answer) != answer and id(node) not in m.inside_helpers:
            yield position


def _occasions(conditions: list[Condition]) -> list[tuple[object, int]]:
    """Each condition with how often it was passed before."""
    seen: dict[object, int] = {}
    found = []
    for place, _, _, _ in conditions:
        seen[place] = seen.get(place, 0) + 1
        found.append((place, seen[place]))
    return found


def _governs(m: Interpreter, test: ast.AST, module: Module, site: Site) -> bool:
    """Whether the statement, or a call on the way to it, stands in an arm of the condition or behind one that leaves."""
    node, end = _conditionals(m, module).get(id(test), (None, 0))
    if node is None:
        return False
    rows = [row for shown, row, _ in site.chain if shown == module.shown]
    inside = any(node.lineno <= row <= (node.end_lineno or node.lineno) for row in rows)
    leaves = any(arm and isinstance(arm[-1], (ast.Return, ast.Continue, ast.Break)) for arm in (node.body, node.orelse))
    return inside or (leaves and any(node.lineno < row <= end for row in rows))


def _conditionals(m: Interpreter, module: Module) -> dict[int, tuple[ast.If, int]]:
    """By the identity of its test: each ``if`` of the module, and the last line of the function around it."""
    key = ("conditionals", module.name)
    known: dict[int, tuple[ast.If, int]] | None = m.index.pure.get(key)
    if known is None:
        known = m.index.pure[key] = {}
        for function in descend(module.tree):
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                end = function.end_lineno or function.lineno
                for node in descend(function):
                    if isinstance(node, ast.If):
                        known[id(node.test)] = (node, min(end, known.get(id(node.test), (node, end))[1]))
    return known
