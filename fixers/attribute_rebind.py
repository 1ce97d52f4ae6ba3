"""A tensor in a plain attribute: handed to the tree's helper, or bound once and copied into afterwards."""

from __future__ import annotations

import libcst as cst

from rebindlint.model import Applicability, Rebinding, Value
from rebindlint.plugin import FixContext, Fixer, Replacement
from rebindlint.rewriting import allocate_once, bind_once, bound_by, call_helper, is_allocation

__all__ = ["AttributeRebind"]


class AttributeRebind(Fixer):
    code = "RB101"

    def fix(
        self, statement: cst.SimpleStatementLine | cst.BaseCompoundStatement, fact: Rebinding, context: FixContext
    ) -> Replacement | None:
        bound = bound_by(statement)
        if bound is None or bound.plain_name not in ("", fact.cell.name) or not fact.certain:
            return None
        if not fact.weight_dependent:
            if fact.existed_before or fact.value is not Value.FRESH:
                return None
            if is_allocation(bound.value, fact):
                return Replacement(
                    allocate_once(bound, fact, context), Applicability.SAFE, f"Allocate `{bound.attribute}` once"
                )
        if fact.existed_before or fact.may_alias:
            return (
                None  # a copy in the first run could leave another layout behind, or write into somebody else's tensor
            )
        applicability = Applicability.SAFE if fact.same_layout else Applicability.UNSAFE
        # what does not hold weights is not made a parameter, nor what no checkpoint has by the time that loaders look for all of them
        if fact.receiver_is_module and fact.weight_dependent and not fact.from_loading:
            called = call_helper(bound, bound.value, context, may_be_none=True)
            if called is not None:
                message = f"Copy into `{bound.attribute}` through `{context.dialect.function}`"
                return Replacement(called, applicability, message)
        return Replacement(
            bind_once(bound, fact, context), Applicability.SAFE, f"Bind `{bound.attribute}` once, then copy into it"
        )
