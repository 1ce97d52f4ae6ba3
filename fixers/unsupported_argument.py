"""An argument that the tree's helper does not take: dropped."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from rebindlint.model import Applicability, HelperKind, Rebinding
from rebindlint.plugin import FixContext, Fixer, Replacement

__all__ = ["UnsupportedArgument"]


class UnsupportedArgument(Fixer):
    code = "RB304"

    def fix(
        self, statement: cst.SimpleStatementLine | cst.BaseCompoundStatement, fact: Rebinding, context: FixContext
    ) -> Replacement | None:
        if fact.helper is None or fact.helper.kind is HelperKind.PREFER_COPY:
            return None
        argument = m.Arg(keyword=m.Name("prefer_copy"))
        calls = m.findall(statement, m.Call(args=[m.ZeroOrMore(), argument, m.ZeroOrMore()]))
        if len(calls) != 1 or not isinstance(statement, cst.SimpleStatementLine):
            return None
        call = cst.ensure_type(calls[0], cst.Call)
        dropped = next(a for a in call.args if m.matches(a, argument))
        args = [a for a in call.args if a is not dropped]
        if args and dropped is call.args[-1]:
            args[-1] = args[-1].with_changes(comma=dropped.comma)
        new = statement.deep_replace(call, call.with_changes(args=args))
        if not isinstance(new, cst.SimpleStatementLine):
            return None
        return Replacement((new,), Applicability.SAFE, "Drop `prefer_copy`, which this tree's helper does not take")
