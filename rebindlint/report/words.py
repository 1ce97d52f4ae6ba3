"""What an execution came to, in words: answers, memories, contents, verdicts."""

from __future__ import annotations

import re

from rebindlint.execution.account import Account, Answer
from rebindlint.execution.memory import CellState, Contents, Memory, Write
from rebindlint.model import Binding, Diagnostic, Hazard, Protocol

__all__ = ["answered", "at_capture", "at_check", "outcome_of"]

_MEMORY = {
    Memory.LOADED: "memory that loading fills",
    Memory.BEFORE: "memory that was there before the hook",
    Memory.FIRST_RUN: "memory that the first run allocated",
    Memory.RUN_TIME: "memory that run-time code allocated when it first needed it",
    Memory.RELOADED: "memory that the reload put there",
    Memory.SECOND_RUN: "memory that the second run allocated",
    Memory.NONE: "None",
    Memory.DELETED: "nothing, it was deleted",
}
_CONTENTS = {
    Contents.FIRST_LOAD: "values of the first load",
    Contents.SECOND_LOAD: "values of the second load",
    Contents.BOTH_LOADS: "values of both loads, mixed",
    Contents.CONSTANT: "values that do not depend on weights",
}
_BOUND = {
    Binding.DATA: "put under it",
    Binding.PARAMETER: "registered",
    Binding.REPLACE: "bound by the tree's helper",
    Binding.RELEASE: "released",
}
_OPERATORS = {
    "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=",
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**",
}  # fmt: skip
_OPERATOR = re.compile(rf"(?<= )({'|'.join(_OPERATORS)})(?= )")
_HAZARDS = {
    Hazard.ADDRESS: "the cell shows other memory than was captured",
    Hazard.FRESHNESS: "the captured memory does not hold what the new weights demand",
    Hazard.LIFETIME: "nothing owns the captured memory any more",
}


def answered(answer: Answer) -> str:
    """The question and the answer taken, without the engine's abbreviations."""
    question, taken = answer.question, answer.answer
    if match := re.fullmatch(r"init (?P<label>.+)\?", question):
        return f"`{match['label']}` starts with the {'first' if taken else 'second'} arm of its conditional expression"
    if match := re.fullmatch(r"init .*:(?P<name>[\w.]+)", question):
        return f"`{match['name']}` starts with what assignment {taken + 1} of {answer.options} gives it"
    question = _OPERATOR.sub(lambda match: _OPERATORS[match[1]], question)
    if question.startswith("import "):
        return f"`{question}` {'succeeds' if taken else 'fails'}"
    if not question or question == "?":
        return f"a condition that nothing in the tree decides is {_truth(taken)}"
    return f"`{question}` is {_truth(taken)}"


def _truth(answer: int) -> str:
    return "true" if answer else "false"


def at_capture(cell: CellState) -> str:
    contents = _CONTENTS[cell.contents]
    return f"{_kind(cell)}{_by(cell.bound, 'not bound by the hook')}; holds {contents}"


def at_check(cell: CellState) -> str:
    kept = f"{'still owned' if cell.owned else 'owned by nothing any more'}, holding {_CONTENTS[cell.captured]}"
    if cell.memory is Memory.ELSEWHERE:
        return f"`{cell.moved}` is another object{_by(cell.bound)}; the captured memory is {kept}"
    if not cell.same:
        return f"{_kind(cell)}{_by(cell.bound)}; the captured memory is {kept}"
    refreshed = _by(cell.copied).replace("bound", "copied into", 1) if cell.copied is not None else ""
    return f"the captured memory{refreshed}; it holds {_CONTENTS[cell.captured]}"


def _kind(cell: CellState) -> str:
    memory = _MEMORY[cell.memory] + (f" (`{cell.weight}`)" if cell.weight and cell.memory is Memory.LOADED else "")
    if cell.memory in (Memory.NONE, Memory.DELETED):
        return memory
    registered = "a registered parameter" if cell.parameter else "a registered buffer"
    kinds = [
        *([registered] if cell.registered else ["a parameter"] if cell.parameter else ["a plain tensor"]),
        *(["a view"] if cell.view else []),
        *(["not contiguous"] if cell.strided else []),
        *(["zeroed"] if cell.zeroed else []),
        *([cell.dtype] if cell.dtype else []),
    ]
    return f"{memory}, {', '.join(kinds)}"


def _by(write: Write | None, otherwise: str = "") -> str:
    if write is None:
        return f", {otherwise}" if otherwise else ""
    text = write.text if len(write.text) <= 100 else write.text[:97] + "..."
    return f", {_BOUND.get(write.binding, 'bound')} at {write.place.filename}:{write.place.start.row} (`{text}`)"


def outcome_of(account: Account, diagnostic: Diagnostic) -> str:
    """Whether the path shows the finding under this protocol, and if not, what saves it."""
    if account.fact is not None:
        return _HAZARDS[account.fact.hazard] + (
            "" if account.called_again else ": the reload does not call the hook again"
        )
    if account.unloadable:
        return "no hazard: after the first run the weights cannot be loaded again, so reloading fails closed"
    if account.refused:
        return "no hazard: the hook raises when it runs again, so reloading fails closed"
    if account.protocol in diagnostic.reload:
        return "a hazard on another path only"
    before, after = account.before, account.after
    if account.protocol is Protocol.LAYERWISE and before is not None and before.registered:
        return "no hazard: what is registered is copied back into the captured memory by name"
    if after is not None and after.owned and after.captured in (Contents.SECOND_LOAD, Contents.CONSTANT):
        return "no hazard: the captured memory is kept and holds what the new weights demand"
    return "no hazard on this path"
