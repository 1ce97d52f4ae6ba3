"""A new parameter under an old name: handed to the tree's helper, or bound once and copied into afterwards."""

from __future__ import annotations

import libcst as cst

from rebindlint.model import Applicability, Rebinding, Value
from rebindlint.plugin import FixContext, Fixer, Replacement
from rebindlint.rewriting import bind_once, bound_by, call_helper, unwrapped

__all__ = ["ParameterReplaced"]


class ParameterReplaced(Fixer):
    code = "RB103"

    def fix(
        self, statement: cst.SimpleStatementLine | cst.BaseCompoundStatement, fact: Rebinding, context: FixContext
    ) -> Replacement | None:
        bound = bound_by(statement)
        if bound is None or fact.may_alias or (fact.existed_before and fact.changes_strides):
            return None
        inner = unwrapped(bound.value)
        if inner is None:
            return None
        if inner is bound.value and fact.value is not Value.FRESH:
            return None  # another parameter under this name: its class and attributes would be lost
        unchanged = not fact.existed_before or fact.value is Value.FRESH
        applicability = Applicability.SAFE if unchanged and fact.same_layout else Applicability.UNSAFE
        called = call_helper(bound, inner, context) if fact.receiver_is_module else None
        if called is not None:
            if inner is bound.value:
                applicability = Applicability.UNSAFE  # not wrapped here: perhaps another class of parameter
            return Replacement(
                called, applicability, f"Copy into `{bound.attribute}` through `{context.dialect.function}`"
            )
        return Replacement(
            bind_once(bound, fact, context), applicability, f"Bind `{bound.attribute}` once, then copy into it"
        )
