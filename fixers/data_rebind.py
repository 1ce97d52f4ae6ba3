"""``p.data = new``: through a helper that keeps the parameter, or copied into where shape, strides and dtype agree."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from rebindlint.model import Applicability, HelperKind, Rebinding
from rebindlint.plugin import FixContext, Fixer, Replacement
from rebindlint.rewriting import Bound, bound_by, call_helper, copy_or_move
from rebindlint.wrapping import code

__all__ = ["DataRebind"]

# These move `.data` of the parameter themselves when they cannot copy; the others put a new object in its place.
_KEEP_THE_PARAMETER = (HelperKind.COPIES, HelperKind.COPIES_OR_MOVES)


class DataRebind(Fixer):
    code = "RB102"

    def fix(
        self, statement: cst.SimpleStatementLine | cst.BaseCompoundStatement, fact: Rebinding, context: FixContext
    ) -> Replacement | None:
        moved = bound_by(statement)
        if moved is None or moved.plain_name != "data" or fact.may_alias or fact.changes_strides:
            return None
        if _transposes_itself(moved):
            return None  # of the same shape only where it is square
        applicability = Applicability.SAFE if fact.same_layout else Applicability.UNSAFE
        target = cst.parse_expression(moved.receiver)
        if m.matches(target, m.Attribute()) and fact.receiver_is_module and context.dialect.kind in _KEEP_THE_PARAMETER:
            owner = cst.ensure_type(target, cst.Attribute)
            bound = Bound.of(owner, moved.value)
            called = call_helper(bound, bound.value, context)
            if called is not None:
                message = f"Copy into `{bound.attribute}` through `{context.dialect.function}`"
                return Replacement(called, applicability, message)
        message = f"Copy into `{moved.receiver}` where shape, strides and dtype agree"
        return Replacement(copy_or_move(moved, context), applicability, message)


_TRANSPOSED = m.Attribute(
    attr=m.OneOf(*[m.Name(name) for name in ("t", "T", "mT", "transpose", "permute", "swapaxes")])
)


def _transposes_itself(moved: Bound) -> bool:
    found = (cst.ensure_type(node, cst.Attribute) for node in m.findall(moved.value, _TRANSPOSED))
    return any(code(node.value) in (moved.receiver, f"{moved.receiver}.data") for node in found)
