"""A derived tensor that overwrote its source: the source is kept, and copied into the derived tensor on a reload."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from rebindlint.model import Applicability, Rebinding
from rebindlint.plugin import FixContext, Fixer, Replacement
from rebindlint.rewriting import code, parse

__all__ = ["LostSource"]

_CASTS = m.Attribute(attr=m.Name("to") | m.Name("float") | m.Name("half") | m.Name("bfloat16") | m.Name("double"))


class LostSource(Fixer):
    code = "RB203"
    scope = "guard"

    def fix(
        self, statement: cst.SimpleStatementLine | cst.BaseCompoundStatement, fact: Rebinding, context: FixContext
    ) -> Replacement | None:
        if not isinstance(statement, cst.If) or statement.orelse is not None or fact.cell.registered:
            return None
        body = statement.body
        if not isinstance(body, cst.IndentedBlock) or len(body.body) != 1:
            return None
        line = body.body[0]
        owner = m.Attribute(value=m.Name(), attr=m.Name(fact.cell.name))
        if not m.matches(line, m.SimpleStatementLine(body=[m.Assign(targets=[m.AssignTarget(owner)])])):
            return None
        assign = cst.ensure_type(cst.ensure_type(line, cst.SimpleStatementLine).body[0], cst.Assign)
        target = cst.ensure_type(assign.targets[0].target, cst.Attribute)
        receiver, private = code(target.value), f"_{fact.cell.name.lstrip('_')}_source"
        kept = f"{receiver}.{private}"
        derived = m.replace(assign.value, owner, cst.parse_expression(kept))
        if not isinstance(derived, cst.BaseExpression) or code(derived) == code(assign.value):
            return None
        keep = parse(f"{kept} = {code(target)}\n")[0]
        bind = line.with_deep_changes(assign, value=derived)
        source = kept if _is_cast(assign.value, owner) else code(derived)
        test = f'getattr({receiver}, "{private}", None) is not None'
        added = cst.ensure_type(parse(f"if {test}:\n    {code(target)}.copy_({source})\n")[0], cst.If)
        new = statement.with_changes(body=body.with_changes(body=[keep, bind]), orelse=added)
        applicability = Applicability.UNSAFE if fact.receiver_is_module else Applicability.SAFE
        return Replacement((new,), applicability, f"Keep the source of `{code(target)}` and copy from it on a reload")


def _is_cast(value: cst.BaseExpression, owner: m.Attribute) -> bool:
    """A conversion of dtype and nothing else: ``copy_`` converts by itself."""
    return m.matches(value, m.Call(func=_CASTS)) and m.matches(
        cst.ensure_type(cst.ensure_type(value, cst.Call).func, cst.Attribute).value, owner
    )
