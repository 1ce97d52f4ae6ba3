"""From what moved to findings. Without numbers only the address codes are given: RT101, RT107, RT108, RT109, and RT100
for what could not be run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from rebindlint.model import Protocol, Severity
from rebindlint.runtime.findings import Finding, Reader, StorageState, make_finding
from rebindlint.runtime.sites import Site, shown
from rebindlint.runtime.sources.facts import Change, Memory, ScenarioFacts

__all__ = ["judge"]

_FATE: Final = {
    "unowned": "which nothing else keeps",
    "kept": "which something outside the layer keeps",
    "elsewhere": "which the layer now uses under another name",
}


def judge(facts: ScenarioFacts, tree: Path) -> Iterator[Finding]:
    """``tree`` is where a finding points that has no line of its own."""
    place = facts.place or Site(shown(str(tree / "vllm" / "__init__.py")), 1, 1, 1, 1, "vllm")
    if facts.error:
        yield make_finding("RT100", f"{facts.title} could not be judged: {facts.error}", place, Protocol.LAYERWISE)
    for change in facts.changes:
        yield _finding(change, facts, place)


def _finding(change: Change, facts: ScenarioFacts, place: Site) -> Finding:
    code, severity, message = _verdict(change, facts)
    rest: dict[str, Any] = {"severity": severity} if severity is not None else {}
    if change.rules:
        rest["static_rules"] = change.rules
    return make_finding(
        code,
        message,
        change.rebound[0] if change.rebound else (change.reader and change.reader.site) or place,
        Protocol.LAYERWISE,
        tensor=change.tensor,
        also=(*change.stayed, *change.also),
        module=change.module,
        reader=Reader(**_fields(change.reader)) if change.reader else None,
        rebound=change.rebound,
        hook=change.hook,
        old=_state(change.old),
        new=_state(change.new) if change.new else None,
        evidence=(f"seen on {facts.title}: {', '.join(facts.classes)}",),
        **rest,
    )


def _verdict(change: Change, facts: ScenarioFacts) -> tuple[str, Severity | None, str]:
    name = f"`{change.tensor}` of {facts.title}"
    if change.kind == "split":
        partner = change.stayed[0]
        return "RT107", None, f"{name} and `{partner}` shared storage before the reload and no longer do"
    known = change.reader is not None or not facts.step_error
    if change.kind == "relaid":
        text = f"{name} changed its layout on the same storage from {change.layouts[0]} to {change.layouts[1]}"
        if change.reader is not None:
            return "RT108", Severity.ERROR, f"{text}; a captured step reads the old layout"
        return "RT108", Severity.NOTE if known else Severity.WARNING, f"{text}; {_unread(facts)}"
    text = f"{name} was {'bound to other storage' if change.new else 'released'} by the reload"
    if change.reader is not None:
        still = f"a captured step still {'writes' if change.reader.access == 'write' else 'reads'} the old one"
        return "RT101", None, f"{text}; {still}, {_FATE[change.old.state]}"
    if known:
        return "RT109", None, f"{text}; {_unread(facts)}"
    return "RT101", Severity.WARNING, f"{text}; {_unread(facts)}"


def _unread(facts: ScenarioFacts) -> str:
    if not facts.step_error:
        return "the step does not read it"
    return f"whether a step reads it is not known, because the step stopped early ({facts.step_error})"


def _fields(use: Any) -> dict[str, Any]:
    return {"operator": use.operator, "argument": use.argument, "access": use.access, "site": use.site}


def _state(memory: Memory) -> StorageState:
    return StorageState(memory.address, memory.nbytes, memory.device, memory.state)
