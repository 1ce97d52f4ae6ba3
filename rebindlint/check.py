"""From facts to diagnostics: which rule owns a fact, how severe it is, what is said."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst
import libcst.matchers as m

from rebindlint.model import Binding, Diagnostic, Hazard, Place, Protocol, Rebinding, Severity

if TYPE_CHECKING:
    from rebindlint.config import Config
    from rebindlint.index import Index
    from rebindlint.plugin import Rule

__all__ = ["diagnose"]

_ORDER = {Hazard.ADDRESS: 0, Hazard.LIFETIME: 1, Hazard.FRESHNESS: 2}


def diagnose(facts: Iterable[Rebinding], rules: Sequence[Rule], index: Index, config: Config) -> list[Diagnostic]:
    """One diagnostic for each place, cell and rule, in the order of the source.

    A statement that leaves a cell dangling along one path and rebinds it along another is one finding: the address hazard.
    A rule that raises is reported under its code and does not end the run.
    """
    shapes = _Shapes(index)
    best: dict[tuple[object, ...], Rebinding] = {}
    for fact in facts:
        wanted = fact.protocols & _protocols(config)
        if not wanted:
            continue
        fact = replace(fact, protocols=wanted)
        s = fact.statement
        key = (s.filename, s.start, fact.cell.name)
        known = best.get(key)
        if known is None or _ORDER[fact.hazard] < _ORDER[known.hazard]:
            shared = fact.shared or (known is not None and known.shared)
            protocols = fact.protocols if known is None else fact.protocols | known.protocols
            best[key] = replace(fact, protocols=protocols, shared=shared)
        else:
            best[key] = replace(known, protocols=known.protocols | fact.protocols)
    asked = Protocol(config.reload) if config.reload not in ("all", None, "") else None
    found = [
        d for fact in best.values() for d in _diagnostics(fact, rules, shapes, asked or index.protocol_of(fact.module))
    ]
    return sorted(found, key=lambda d: d.sort_key)


def _protocols(config: Config) -> frozenset[Protocol]:
    chosen = config.reload
    return frozenset(Protocol) if chosen in ("all", None, "") else frozenset({Protocol(chosen)})


def _diagnostics(fact: Rebinding, rules: Sequence[Rule], shapes: _Shapes, own: Protocol) -> list[Diagnostic]:
    for rule in _concerned(fact, rules):
        try:
            if rule.owns(fact) and shapes.matches(rule, fact):
                return [_diagnostic(fact, rule, own)]
        except Exception as error:  # one rule on one fact must not end the run
            message = f"rule {rule.code} failed on this statement: {type(error).__name__}: {error}"
            return [Diagnostic(rule.code, rule.name, message, Severity.WARNING, fact.statement, hook=fact.hook)]
    return []


_WHERE_RESTORED = " (direct: where the loader gives the parameter the checkpoint's dtype and shape back first)"

_WHERE_NOT_CALLED = " (layerwise: that reload does not call it again, and what it left stays that of the first weights)"


def _concerned(fact: Rebinding, rules: Sequence[Rule]) -> Sequence[Rule]:
    """The rule of its own that some facts have, or all rules."""
    own = {"RB205": fact.lazy, "RB303": fact.shared, "RB401": fact.lost, "RB202": fact.binding is Binding.SCALAR}
    code = next((code for code, applies in own.items() if applies), "")
    return [rule for rule in rules if rule.code == code] if code else rules


def _where(fact: Rebinding) -> str:
    """What the protocols differ in, where the message alone holds for one of them."""
    if fact.restored and Protocol.DIRECT in fact.protocols:
        return _WHERE_RESTORED
    both = fact.not_called and fact.hazard is not Hazard.FRESHNESS and Protocol.LAYERWISE in fact.protocols
    return _WHERE_NOT_CALLED if both else ""


def _diagnostic(fact: Rebinding, rule: Rule, own: Protocol) -> Diagnostic:
    certain = fact.certain and not (fact.restored and own is Protocol.DIRECT)
    severity = Severity.ERROR if own in fact.protocols and certain else Severity.WARNING
    return Diagnostic(
        rule.code,
        rule.name,
        rule.message(fact) + _where(fact),
        severity,
        fact.statement,
        fact.cell.path,
        fact.hook,
        tuple(sorted(fact.protocols)),
        fact.chain,
        help=rule.advice(fact),
        fact=fact,
    )


class _Shapes:
    """The statements of facts as LibCST sees them, parsed alone: cut out by their lines and dedented."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._nodes: dict[Place, cst.CSTNode | None] = {}

    def matches(self, rule: Rule, fact: Rebinding) -> bool:
        """Whether the statement has the shape that the rule owns; what cannot be parsed alone is taken to have it."""
        if rule.shape is None:
            return True
        if fact.statement not in self._nodes:
            self._nodes[fact.statement] = self._parse(fact)
        node = self._nodes[fact.statement]
        return node is None or bool(m.findall(node, rule.shape))

    def _parse(self, fact: Rebinding) -> cst.CSTNode | None:
        module = self._index.module(fact.module)
        if module is None:
            return None
        place = fact.statement
        lines = module.lines[place.start.row - 1 : place.end.row]
        text = textwrap.dedent("\n".join(lines)) + "\n"
        parsers: tuple[Callable[[str], cst.CSTNode], ...] = (
            cst.parse_module,
            lambda t: cst.parse_module(t.rstrip() + "\n    pass\n"),
        )
        for parse in parsers:
            try:
                return parse(text)
            except (cst.ParserSyntaxError, RecursionError):
                continue
        return None
