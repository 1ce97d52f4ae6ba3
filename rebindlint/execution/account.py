"""How a fact came about: the path that shows it, executed once more with everything written down that was asked and decided.

Nothing of this is kept during a check. The path of a fact is its answers; a second search of the hook finds them again.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from rebindlint.execution.compare import compare
from rebindlint.execution.memory import CellState, at_capture, at_check, captured_cell
from rebindlint.execution.oracle import Oracle
from rebindlint.execution.places import place_of
from rebindlint.execution.run import PROTOCOLS, execute_hook
from rebindlint.execution.twice import Outcome, execute_twice
from rebindlint.index import Hook, Index
from rebindlint.index.modules import Module
from rebindlint.index.readers import Readers
from rebindlint.model import Hazard, Place, Protocol, Rebinding

__all__ = ["Account", "Answer", "Decision", "accounts_of"]

_ORDER = (Hazard.ADDRESS, Hazard.LIFETIME, Hazard.FRESHNESS)
_Conditions = Sequence[tuple[Hashable, bool, ast.AST, object]]


@dataclass(frozen=True, slots=True)
class Decision:
    """A condition that the path went by: ``first`` and ``second`` are its truth in the two runs, None where it was not reached.

    ``asked``: nothing in the tree decides it, so an answer was assumed; else the state of the objects does. ``aside``: it lies off
    the way to the statement of the finding.
    """

    place: Place
    text: str
    first: bool | None
    second: bool | None
    asked: bool
    aside: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """A question that is no condition of the source, such as what a constructor bound: ``answer`` of ``options``."""

    place: Place
    question: str
    answer: int
    options: int = 2
    aside: bool = False


@dataclass(frozen=True, slots=True)
class Account:
    """One path under one protocol. ``fact`` is None when the path does not show the finding under it.

    ``called_again``: whether the reload calls the hook at all. ``before`` and ``after`` are the cell at capture and at the check, None where the finding is about a statement alone.
    """

    protocol: Protocol
    fact: Rebinding | None
    decisions: tuple[Decision, ...] = ()
    answers: tuple[Answer, ...] = ()
    before: CellState | None = None
    after: CellState | None = None
    refused: bool = False
    called_again: bool = True
    unloadable: bool = False  # it is the loader that refuses


@dataclass(frozen=True, slots=True)
class _Path:
    fact: Rebinding
    answers: dict[Hashable, int]
    default: int
    tolerant: bool


def accounts_of(
    index: Index, hook: Hook, protocols: tuple[Protocol, ...], statement: Place, cell: str
) -> tuple[Account, ...]:
    """How the hook comes to the finding at ``statement`` about the cell with this path, under each protocol; nothing when it does not."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 12_000))
    paths: dict[Protocol, _Path] = {}

    def watch(outcome: Outcome, found: Sequence[Rebinding]) -> None:
        for fact in found:
            known = paths.get(outcome.protocol)
            if not _is(fact, statement, cell) or (known is not None and _rank(known.fact) <= _rank(fact)):
                continue
            m = outcome.interpreter
            paths[outcome.protocol] = _Path(fact, dict(m.oracle.answers), m.oracle.default, m.tolerant)

    execute_hook(index, hook, PROTOCOLS, watch)  # in the order of a check: what is tried depends on it
    if paths.keys().isdisjoint(protocols):
        return ()
    shown = next(paths[protocol] for protocol in protocols if protocol in paths)
    return tuple(_account(index, hook, protocol, paths.get(protocol, shown)) for protocol in protocols)


def _is(fact: Rebinding, statement: Place, cell: str) -> bool:
    return fact.statement == statement and fact.cell.path == cell


def _rank(fact: Rebinding) -> int:
    return _ORDER.index(fact.hazard)


def _account(index: Index, hook: Hook, protocol: Protocol, path: _Path) -> Account:
    wanted = path.fact
    for restored in (False, True):
        recorder = _Recorder(path.answers, path.default)
        outcome = execute_twice(index, hook, recorder, protocol, restored=restored, tolerant=path.tolerant)
        found = [f for f in compare(outcome, hook, Readers.of(index)) if _is(f, wanted.statement, wanted.cell.path)]
        fact = min((replace(f, restored=restored) for f in found), key=_rank, default=None)
        if fact is not None or not outcome.refused:
            break
    near = _Near(index, wanted)
    decisions = tuple(
        replace(d, aside=not (near.is_near(d.place) or _differs(d))) for d in _decisions(outcome, recorder)
    )
    answers = tuple(replace(a, aside=not near.is_near(a.place)) for a in _answers(index, outcome, recorder))
    cell = captured_cell(outcome, (fact or wanted).cell.path)
    return Account(
        protocol,
        fact,
        decisions,
        answers,
        at_capture(outcome, cell) if cell is not None else None,
        at_check(outcome, cell) if cell is not None and outcome.completed else None,
        outcome.refused,
        protocol is not Protocol.LAYERWISE or not hook.after_model,
        outcome.unloadable,
    )


def _differs(decision: Decision) -> bool:
    return decision.second is not None and decision.first is not None and decision.first != decision.second


# ---- recording


@dataclass(frozen=True, slots=True)
class _Question:
    key: Hashable
    place: Hashable
    answer: int
    options: int


class _Recorder(Oracle):
    """Follows a path and remembers where each of its questions came up."""

    def __init__(self, plan: dict[Hashable, int], default: int) -> None:
        super().__init__(dict(plan), default)
        self.questions: list[_Question] = []

    def ask(self, key: Hashable, place: Hashable, options: int = 2, default: int | None = None) -> int:
        answer = super().ask(key, place, options, default)
        self.questions.append(_Question(key, place, answer, options))
        return answer


def _decisions(outcome: Outcome, recorder: _Recorder) -> Iterator[Decision]:
    """The conditions in the order of the first run; then those that only the second reached. Repetitions count once."""
    asked = {question.place for question in recorder.questions}
    first: _Conditions = outcome.first_conditions or outcome.interpreter.conditions
    second: _Conditions = outcome.interpreter.conditions if outcome.first_conditions is not None else ()
    again: dict[tuple[Hashable, int], bool] = dict(_numbered(second))
    done: set[tuple[object, ...]] = set()
    for (_, answer, node, module), (key, _) in zip(first, _numbered(first), strict=True):
        assert isinstance(module, Module)
        later = again.pop(key, None)
        if (id(node), answer, later) in done:
            continue
        done.add((id(node), answer, later))
        yield Decision(place_of(module, node), _source(node), answer, later, _is_asked(module, node, asked))
    for (_, answer, node, module), (key, _) in zip(second, _numbered(second), strict=True):
        assert isinstance(module, Module)
        if key in again and (id(node), None, answer) not in done:
            done.add((id(node), None, answer))
            yield Decision(place_of(module, node), _source(node), None, answer, _is_asked(module, node, asked))


def _numbered(conditions: _Conditions) -> list[tuple[tuple[Hashable, int], bool]]:
    """Each condition with how often its place was passed before: the same number in the other run is the same occasion."""
    seen: dict[Hashable, int] = {}
    found = []
    for place, answer, _, _ in conditions:
        seen[place] = seen.get(place, 0) + 1
        found.append(((place, seen[place]), answer))
    return found


def _is_asked(module: Module, node: ast.AST, asked: set[Hashable]) -> bool:
    """Whether a question came up inside the condition."""
    spots = {
        (module.name, inner.lineno, inner.col_offset)
        for inner in ast.walk(node)
        if isinstance(inner, (ast.expr, ast.pattern))
    }
    return not spots.isdisjoint(asked)


def _answers(index: Index, outcome: Outcome, recorder: _Recorder) -> Iterator[Answer]:
    """The questions that stand in no condition."""
    conditions = [*(outcome.first_conditions or ()), *outcome.interpreter.conditions]
    inside = {
        (module.name, inner.lineno, inner.col_offset)
        for node, module in {id(n): (n, module) for _, _, n, module in conditions}.values()
        if isinstance(module, Module)
        for inner in ast.walk(node)
        if isinstance(inner, ast.expr)
    }
    done: set[tuple[Hashable, Hashable]] = set()
    for question in recorder.questions:
        place = question.place
        if (question.key, place) in done or place in inside or not isinstance(place, tuple):
            continue
        done.add((question.key, place))
        module = index.module(str(place[0]))
        if module is None or not place[1]:
            continue
        node = ast.Pass(lineno=place[1], col_offset=place[2], end_lineno=place[1], end_col_offset=place[2])
        yield Answer(place_of(module, node), _label(question.key), question.answer, question.options)


def _label(key: Hashable) -> str:
    """What was asked, as the engine calls it; empty when it has no name."""
    if isinstance(key, tuple) and key[:1] == ("?",):
        return str(key[1])
    if isinstance(key, tuple) and key[:1] == ("==",):
        return f"{key[1]} == {key[2]}"
    return ""


def _source(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())


# ---- what belongs to the finding


class _Near:
    """The functions of the chain, each up to where the chain leaves it."""

    def __init__(self, index: Index, fact: Rebinding) -> None:
        self._stretches: list[tuple[str, int, int]] = []
        steps = [(frame.filename, frame.row) for frame in fact.chain]
        for filename, row in dict.fromkeys([*steps, (fact.statement.filename, fact.statement.start.row)]):
            source = index.by_shown.get(filename)
            module = index.module(source.module) if source is not None else None
            if module is not None:
                self._stretches.append((filename, _start_of_function(module, row), row))

    def is_near(self, place: Place) -> bool:
        row = place.start.row
        return any(place.filename == name and start <= row <= end for name, start, end in self._stretches)


def _start_of_function(module: Module, row: int) -> int:
    """The first line of the innermost function around a line."""
    around = [
        node.lineno
        for node in ast.walk(module.tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.lineno <= row <= (node.end_lineno or node.lineno)
    ]
    return max(around, default=row)
