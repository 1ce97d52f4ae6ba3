"""A tensor that is derived behind `is None`: derived again on a reload, and copied into the one that is there."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from rebindlint.model import Applicability, Rebinding
from rebindlint.plugin import FixContext, Fixer, Replacement
from rebindlint.rewriting import Bound, bound_by, parse, unwrapped
from rebindlint.wrapping import called, code

__all__ = ["OneShotGuard"]


class OneShotGuard(Fixer):
    code = "RB204"
    scope = "guard"

    def fix(
        self, statement: cst.SimpleStatementLine | cst.BaseCompoundStatement, fact: Rebinding, context: FixContext
    ) -> Replacement | None:
        bound = _only_bound(statement)
        if not isinstance(statement, cst.If) or bound is None or bound.plain_name != fact.cell.name:
            return None
        test = code(statement.test)
        if test in (f"{bound.attribute} is None", f"getattr({bound.receiver}, {bound.name}, None) is None"):
            head = "else:"
        elif test == f"not hasattr({bound.receiver}, {bound.name})":
            head = f"elif {bound.attribute} is not None:"  # set, but to None: what the guard skipped before
        else:
            return None
        quietly = fact.cell.registered or fact.value_is_parameter
        target = f"{bound.attribute}.data" if quietly else bound.attribute
        copy = called(f"{target}.copy_", unwrapped(bound.value) or bound.value, context.width - len(context.indent))
        arms = cst.ensure_type(parse(f"if True:\n    pass\n{head}\n    {copy}\n")[0], cst.If)
        added = statement.with_changes(orelse=arms.orelse)
        return Replacement((added,), Applicability.UNSAFE, f"Copy into `{bound.attribute}` when it is there already")


def _only_bound(statement: cst.CSTNode) -> Bound | None:
    """What the only statement behind the guard binds; None when there is more to it."""
    simple = m.If(orelse=None, body=m.IndentedBlock(body=[m.SimpleStatementLine()]))
    if not m.matches(statement, simple):
        return None
    body = cst.ensure_type(cst.ensure_type(statement, cst.If).body, cst.IndentedBlock).body[0]
    bound = bound_by(cst.ensure_type(body, cst.SimpleStatementLine))
    return bound if bound is not None and not bound.method and isinstance(body, cst.SimpleStatementLine) else None
