"""A derived tensor that overwrote its source: the source is kept, and copied into the derived tensor on a reload."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from rebindlint.model import Applicability, Rebinding
from rebindlint.plugin import FixContext, Fixer, Replacement
from rebindlint.rewriting import Statement, parse
from rebindlint.wrapping import code

__all__ = ["LostSource"]

_CASTS = m.Attribute(attr=m.Name("to") | m.Name("float") | m.Name("half") | m.Name("bfloat16") | m.Name("double"))


class LostSource(Fixer):
    code = "RB203"
    scope = "guard"

    def fix(
        self, statement: cst.SimpleStatementLine | cst.BaseCompoundStatement, fact: Rebinding, context: FixContext
    ) -> Replacement | None:
        if fact.cell.registered:
            return None
        if isinstance(statement, cst.If):
            line = _only_line(statement)
            kept = _Kept.of(line, fact.cell.name, context) if line is not None else None
            new = kept.in_guard(statement) if kept is not None else None
        else:
            kept = _Kept.of(statement, fact.cell.name, context)
            new = kept.alone() if kept is not None else None
        if kept is None or new is None:
            return None
        applicability = Applicability.UNSAFE if fact.receiver_is_module else Applicability.SAFE
        return Replacement((new,), applicability, f"Keep the source of `{kept.target}` and copy from it on a reload")


def _only_line(guard: cst.If) -> Statement | None:
    body = guard.body
    if guard.orelse is not None or not isinstance(body, cst.IndentedBlock) or len(body.body) != 1:
        return None
    line = body.body[0]
    return line if isinstance(line, cst.SimpleStatementLine) else None


@dataclass(frozen=True, slots=True)
class _Kept:
    """``target = f(target)`` as ``source = target`` and ``target = f(source)``; ``refreshed`` is what to copy on a reload."""

    receiver: str
    target: str
    private: str
    bind: Statement
    refreshed: str

    @classmethod
    def of(cls, line: Statement, name: str, context: FixContext) -> _Kept | None:
        owner = m.Attribute(value=m.Name(), attr=m.Name(name))
        if not m.matches(line, m.SimpleStatementLine(body=[m.Assign(targets=[m.AssignTarget(owner)])])):
            return None
        assign = cst.ensure_type(cst.ensure_type(line, cst.SimpleStatementLine).body[0], cst.Assign)
        target = cst.ensure_type(assign.targets[0].target, cst.Attribute)
        receiver, private = code(target.value), context.attribute(f"_{name.lstrip('_')}_source")
        derived = m.replace(assign.value, owner, cst.parse_expression(f"{receiver}.{private}"))
        if not isinstance(derived, cst.BaseExpression) or code(derived) == code(assign.value):
            return None
        refreshed = f"{receiver}.{private}" if _is_cast(assign.value, owner) else code(derived)
        bind = cst.ensure_type(line, cst.SimpleStatementLine).with_deep_changes(assign, value=derived)
        return cls(receiver, code(target), private, bind, refreshed)

    @property
    def _keep(self) -> Statement:
        return parse(f"{self.receiver}.{self.private} = {self.target}\n")[0]

    def in_guard(self, guard: cst.If) -> Statement:
        """The guard with an arm for the runs in which it has nothing to do."""
        test = f'getattr({self.receiver}, "{self.private}", None) is not None'
        added = cst.ensure_type(parse(f"if {test}:\n    {self.target}.copy_({self.refreshed})\n")[0], cst.If)
        return guard.with_changes(body=guard.body.with_changes(body=[self._keep, self.bind]), orelse=added)

    def alone(self) -> Statement:
        """The first run derives and keeps the source; the next copies."""
        test = f'getattr({self.receiver}, "{self.private}", None) is None'
        added = parse(f"if {test}:\n    pass\nelse:\n    {self.target}.copy_({self.refreshed})\n")[0]
        branch = cst.ensure_type(added, cst.If)
        return branch.with_changes(body=branch.body.with_changes(body=[self._keep, self.bind]))


def _is_cast(value: cst.BaseExpression, owner: m.Attribute) -> bool:
    """A conversion of dtype and nothing else: ``copy_`` converts by itself."""
    return m.matches(value, m.Call(func=_CASTS)) and m.matches(
        cst.ensure_type(cst.ensure_type(value, cst.Call).func, cst.Attribute).value, owner
    )
