"""An object that the hook builds anew: built by the first run, and kept."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from rebindlint.model import Applicability, Rebinding
from rebindlint.plugin import FixContext, Fixer, Replacement
from rebindlint.rewriting import bound_by, build_once

__all__ = ["HolderRebuilt"]

_OVER_LINES = m.SimpleString(value=m.MatchIfTrue(lambda text: "\n" in text)) | m.FormattedStringText(
    value=m.MatchIfTrue(lambda text: "\n" in text)
)


class HolderRebuilt(Fixer):
    code = "RB201"

    def fix(
        self, statement: cst.SimpleStatementLine | cst.BaseCompoundStatement, fact: Rebinding, context: FixContext
    ) -> Replacement | None:
        bound = bound_by(statement)
        if bound is None or bound.method or bound.plain_name != fact.cell.name:
            return None
        if fact.existed_before or fact.weight_dependent:
            return None  # there is an object before the first run, or what it holds has to be derived again
        if not isinstance(bound.value, cst.Call) or m.findall(statement, _OVER_LINES):
            return None  # it is built elsewhere all the same, or its text would change with its indentation
        message = f"Build `{bound.attribute}` once, which is right when all that it holds is refreshed in place"
        return Replacement(build_once(bound, statement, context), Applicability.UNSAFE, message)
