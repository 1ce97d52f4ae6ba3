"""A slot of a dictionary: filled once and copied into afterwards."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from rebindlint.model import Applicability, Rebinding
from rebindlint.plugin import FixContext, Fixer, Replacement
from rebindlint.rewriting import agreement, parse
from rebindlint.wrapping import assigned, code

__all__ = ["SlotRebind"]

_REPEATABLE = m.Name() | m.Attribute(value=m.Name()) | m.SimpleString()


class SlotRebind(Fixer):
    code = "RB105"

    def fix(
        self, statement: cst.SimpleStatementLine | cst.BaseCompoundStatement, fact: Rebinding, context: FixContext
    ) -> Replacement | None:
        slot = m.Subscript(
            value=m.Name() | m.Attribute(value=m.Name()), slice=[m.SubscriptElement(m.Index(_REPEATABLE))]
        )
        shape = m.SimpleStatementLine(body=[m.Assign(targets=[m.AssignTarget(slot)])])
        in_dictionary = fact.cell.path.endswith("']")  # `0 in a_list` would compare tensors
        if not m.matches(statement, shape) or not in_dictionary or fact.may_alias or fact.existed_before:
            return None
        assign = cst.ensure_type(cst.ensure_type(statement, cst.SimpleStatementLine).body[0], cst.Assign)
        target = cst.ensure_type(assign.targets[0].target, cst.Subscript)
        holder, key = code(target.value), code(target.slice[0])
        named = isinstance(assign.value, cst.Name)
        new = code(assign.value) if named else context.temporary("new_tensor")
        old = context.temporary("old_tensor")
        lookup = f"{old} = {holder}[{key}] if {key} in {holder} else None\n"
        if len(lookup) > context.width + 1:
            lookup = f"{old} = (\n    {holder}[{key}] if {key} in {holder} else None\n)\n"
        text = (
            f"{'' if named else assigned(new, assign.value, context.width)}"
            f"{lookup}"
            f"{agreement(old, new, context.width, may_be_none=False)}\n"
            f"    {old}.copy_({new})\n"
            "else:\n"
            f"    {holder}[{key}] = {new}\n"
        )
        return Replacement(parse(text), Applicability.SAFE, f"Fill `{holder}[{key}]` once, then copy into it")
