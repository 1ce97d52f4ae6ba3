"""A copy from another view of its own memory: through a clone."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from rebindlint.model import Applicability, Rebinding
from rebindlint.plugin import FixContext, Fixer, Replacement
from rebindlint.wrapping import code

__all__ = ["OverlappingCopy"]


class OverlappingCopy(Fixer):
    code = "RB302"

    def fix(
        self, statement: cst.SimpleStatementLine | cst.BaseCompoundStatement, fact: Rebinding, context: FixContext
    ) -> Replacement | None:
        copies = m.findall(
            statement, m.Call(func=m.Attribute(attr=m.Name("copy_")), args=[m.Arg(keyword=None), m.ZeroOrMore()])
        )
        if len(copies) != 1 or not isinstance(statement, cst.SimpleStatementLine):
            return None
        call = cst.ensure_type(copies[0], cst.Call)
        source = code(call.args[0].value)
        inner = (
            source
            if isinstance(call.args[0].value, cst.Name | cst.Attribute | cst.Call | cst.Subscript)
            else f"({source})"
        )
        first = call.args[0].with_changes(value=cst.parse_expression(f"{inner}.clone()"))
        new = statement.deep_replace(call, call.with_changes(args=[first, *call.args[1:]]))
        if not isinstance(new, cst.SimpleStatementLine):
            return None
        return Replacement((new,), Applicability.UNSAFE, "Put a `.clone()` in front of the copy")
