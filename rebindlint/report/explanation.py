"""A finding told at length: verdict, calls, decisions, the cell at the two moments, fix."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence

from rich.text import Text

from rebindlint.execution.account import Account, Decision
from rebindlint.explain import Explanation
from rebindlint.model import Applicability, Protocol, RebindlintError, Severity
from rebindlint.report.frame import diff_frame, source_frame
from rebindlint.report.json import as_record
from rebindlint.report.style import COLOURS, counted, printable
from rebindlint.report.text import step
from rebindlint.report.words import answered, at_capture, at_check, outcome_of
from rebindlint.texts import split_lines

__all__ = ["render", "render_json"]

Read = Callable[[str], str]
_OWN = {
    Protocol.LAYERWISE: "by which the tree's own engine reloads: it is vLLM, or imports it",
    Protocol.DIRECT: "by which the tree's own engine reloads: loaders write into the live parameters, then the hook runs again",
    Protocol.SLEEP: "by which the tree's own engine reloads",
}


def render(explanations: Iterable[Explanation], read: Read, *, everything: bool = False) -> list[Text]:
    """One block a finding, an empty line after each. ``everything`` also shows decisions that do not lie on the way to the statement."""
    lines: list[Text] = []
    for explanation in explanations:
        lines += [*_block(explanation, read, everything), Text()]
    return lines


def _block(explanation: Explanation, read: Read, everything: bool) -> list[Text]:
    diagnostic = explanation.diagnostic
    style = COLOURS[diagnostic.severity]
    head = Text.assemble((f"{diagnostic.code} {diagnostic.name}: ", style), (printable(diagnostic.message), "bold"))
    source = _text(read, diagnostic.place.filename)
    frame = [] if source is None else source_frame(source, diagnostic.place, style)
    lines = [head, Text(f"  --> {printable(str(diagnostic.place))}", "bold blue"), *frame]
    lines += _section("Verdict", _verdict(explanation))
    if diagnostic.trace:
        lines += _section("Calls", _calls(explanation, read))
    if explanation.accounts:
        shown = next((a for a in explanation.accounts if a.fact is not None), explanation.accounts[0])
        lines += _section("Decisions", _decisions(shown, everything))
        lines += _section(f"Cell `{printable(diagnostic.attribute)}`", _cell(explanation))
    lines += _fix(explanation, source)
    if not explanation.accounts:
        lines += _section("Path", ["no execution of a hook leads here: the finding speaks for itself"])
    return lines


def _section(title: str, sentences: Iterable[str]) -> list[Text]:
    return [Text(), Text(title, "bold"), *(Text(f"  {printable(sentence)}") for sentence in sentences)]


# ---- verdict


def _verdict(explanation: Explanation) -> Iterator[str]:
    yield f"{explanation.diagnostic.severity.value}: {_reason(explanation)}"
    told = [(account.protocol, outcome_of(account, explanation.diagnostic)) for account in explanation.accounts]
    for names, sentence in _together(told):
        yield f"{names} reload: {sentence}"
    if explanation.silenced:
        yield f"a check does not report it: {explanation.silenced}"


def _reason(explanation: Explanation) -> str:
    diagnostic, own = explanation.diagnostic, explanation.own
    if diagnostic.severity is Severity.NOTE:
        return "nothing was decided here; a note never changes the exit code"
    if not diagnostic.reload:
        return "it depends on no reload protocol"
    whose = "which was asked for" if explanation.chosen else _OWN[own]
    if diagnostic.severity is Severity.ERROR:
        return f"it holds under {own.value} reload, {whose}"
    if own in diagnostic.reload and any(a.fact.restored for a in explanation.accounts if a.fact is not None):
        return f"it holds under {own.value} reload, {whose}; but only where the loader gives the parameter the checkpoint's dtype and shape back first"
    if own in diagnostic.reload:
        return f"it holds under {own.value} reload, {whose}; but nothing says that what is bound is a tensor at all"
    others = " and ".join(protocol.value for protocol in diagnostic.reload)
    return f"it holds under {others} reload only, not under {own.value} reload, {whose}"


# ---- calls and decisions


def _calls(explanation: Explanation, read: Read) -> Iterator[str]:
    for number, frame in enumerate(explanation.diagnostic.trace):
        lines = split_lines(_text(read, frame.filename) or "")
        line = lines[frame.row - 1].strip() if 0 < frame.row <= len(lines) else ""
        yield f"{step(number, frame)}{frame.text} ({frame.filename}:{frame.row})" + (f": {line}" if line else "")


def _decisions(account: Account, everything: bool) -> Iterator[str]:
    decisions = [d for d in account.decisions if everything or not d.aside]
    answers = [a for a in account.answers if everything or not a.aside]
    for answer in answers:
        yield f"{_at(answer.place)}  {answered(answer)}: assumed, in both runs"
    for decision in decisions:
        yield f"{_at(decision.place)}  `{decision.text}` is {_truth(decision)}"
    left = len(account.decisions) + len(account.answers) - len(decisions) - len(answers)
    if left:
        yield f"and {counted(left, 'decision')} off the way to the statement (--verbose shows them)"
    if not account.decisions and not account.answers:
        yield "none: there is one path"


def _truth(decision: Decision) -> str:
    first, second = _word(decision.first), _word(decision.second)
    why = "assumed" if decision.asked else "known"
    if decision.first is None:
        return f"{second}: {why}, in the second run alone"
    if decision.second is None:
        return f"{first}: {why}, in the first run; the second does not come here"
    if decision.first != decision.second:
        return f"{first} in the first run and {second} in the second, by what the first run left"
    return f"{first}: {why}, in both runs"


def _word(truth: bool | None) -> str:
    return str(bool(truth)).lower()


def _at(place: object) -> str:
    return str(place).rpartition(":")[0]


# ---- the cell


def _cell(explanation: Explanation) -> Iterator[str]:
    accounts = explanation.accounts
    before = next((a.before for a in accounts if a.before is not None), None)
    if before is None:
        yield "it is the statement that is judged, whatever becomes of the cell"
        return
    yield f"at capture: {at_capture(before)}"
    told = [(account.protocol, at_check(account.after)) for account in accounts if account.after is not None]
    for names, sentence in _together(told):
        yield f"at the check, {names} reload: {sentence}"


def _together(told: Sequence[tuple[Protocol, str]]) -> Iterator[tuple[str, str]]:
    """Protocols of which the same is to be said, with that."""
    sentences: dict[str, list[str]] = {}
    for protocol, sentence in told:
        sentences.setdefault(sentence, []).append(protocol.value)
    return ((" and ".join(names), sentence) for sentence, names in sentences.items())


# ---- fix


def _fix(explanation: Explanation, source: str | None) -> list[Text]:
    diagnostic = explanation.diagnostic
    fix = diagnostic.fix
    if fix is None:
        return _section("Fix", [f"none is offered. {diagnostic.help}".rstrip()])
    applied = {
        Applicability.SAFE: "safe, applied by --fix",
        Applicability.UNSAFE: "unsafe, applied by --fix --unsafe-fixes: it may change what a load leaves behind",
        Applicability.DISPLAY: "a suggestion: shown, never applied",
    }[fix.applicability]
    lines = _section("Fix", [f"{fix.message} ({applied})"])
    if source is not None:
        lines += diff_frame(source, [edit for edit in fix.edits if edit.place.filename == diagnostic.place.filename])
    return lines


def _text(read: Read, filename: str) -> str | None:
    try:
        return read(filename)
    except RebindlintError:
        return None


# ---- for programs


def render_json(explanations: Sequence[Explanation]) -> str:
    """A list of findings as in a check's report, each with ``explanation``."""
    records = [{**as_record(one.diagnostic), "explanation": _record(one)} for one in explanations]
    return json.dumps(records, indent=2) + "\n"


def _record(explanation: Explanation) -> dict[str, object]:
    return {
        "reason": _reason(explanation),
        "silenced": explanation.silenced or None,
        "paths": [_account(account, explanation) for account in explanation.accounts],
    }


def _account(account: Account, explanation: Explanation) -> dict[str, object]:
    decisions = [
        {
            "filename": d.place.filename,
            "row": d.place.start.row,
            "condition": d.text,
            "first_run": d.first,
            "second_run": d.second,
            "assumed": d.asked,
            "aside": d.aside,
        }
        for d in account.decisions
    ]
    answers = [
        {
            "filename": a.place.filename,
            "row": a.place.start.row,
            "condition": answered(a),
            "first_run": None,
            "second_run": None,
            "assumed": True,
            "aside": a.aside,
        }
        for a in account.answers
    ]
    return {
        "reload": account.protocol.value,
        "holds": account.fact is not None,
        "outcome": outcome_of(account, explanation.diagnostic),
        "decisions": [*answers, *decisions],
        "at_capture": at_capture(account.before) if account.before is not None else None,
        "at_check": at_check(account.after) if account.after is not None else None,
    }
