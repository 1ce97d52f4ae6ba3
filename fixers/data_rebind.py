"""``p.data = new``: handed to the tree's helper under the parameter's name."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from rebindlint.model import Applicability, Rebinding
from rebindlint.plugin import FixContext, Fixer, Replacement
from rebindlint.rewriting import Bound, bound_by, call_helper, code

__all__ = ["DataRebind"]


class DataRebind(Fixer):
    code = "RB102"

    def fix(
        self, statement: cst.SimpleStatementLine | cst.BaseCompoundStatement, fact: Rebinding, context: FixContext
    ) -> Replacement | None:
        moved = bound_by(statement)
        if moved is None or moved.plain_name != "data" or fact.may_alias or fact.changes_strides:
            return None
        target = cst.parse_expression(moved.receiver)
        if not m.matches(target, m.Attribute()) or not fact.receiver_is_module:
            return None
        owner = cst.ensure_type(target, cst.Attribute)
        bound = Bound(code(owner.value), f'"{owner.attr.value}"', moved.value)
        called = call_helper(bound, bound.value, context)
        if called is None:
            return None
        return Replacement(
            called, Applicability.UNSAFE, f"Copy into `{bound.attribute}` through `{context.dialect.function}`"
        )
