"""A call of the replace helper: asked to copy where it can be asked, else bound once and copied into."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from rebindlint.model import Applicability, HelperKind, Rebinding, Value
from rebindlint.plugin import FixContext, Fixer, Replacement
from rebindlint.rewriting import Bound, Statement, bind_once, call_helper, is_repeatable, is_tensor, parse, unwrapped
from rebindlint.wrapping import call as written_call
from rebindlint.wrapping import code

__all__ = ["ReplaceWithoutCopy"]


class ReplaceWithoutCopy(Fixer):
    code = "RB104"

    def fix(
        self, statement: cst.SimpleStatementLine | cst.BaseCompoundStatement, fact: Rebinding, context: FixContext
    ) -> Replacement | None:
        if fact.helper is None or fact.may_alias or (fact.existed_before and fact.changes_strides):
            return None
        if not isinstance(statement, cst.SimpleStatementLine) or not m.matches(
            statement, m.SimpleStatementLine(body=[m.Expr(value=m.Call())])
        ):
            return None
        call = cst.ensure_type(
            cst.ensure_type(cst.ensure_type(statement, cst.SimpleStatementLine).body[0], cst.Expr).value, cst.Call
        )
        if any(a.star or m.matches(a, m.Arg(keyword=m.Name("prefer_copy"))) for a in call.args):
            return None
        safe = fact.same_layout and (not fact.existed_before or fact.value is Value.FRESH)
        applicability = Applicability.SAFE if safe else Applicability.UNSAFE
        if fact.helper.kind is HelperKind.PREFER_COPY:
            return Replacement((_asked_to_copy(statement, call, context),), applicability, "Pass `prefer_copy=True`")
        if fact.helper.kind is HelperKind.REBINDS:
            return self._bind_once(call, fact, context, applicability)
        return None

    def _bind_once(
        self, call: cst.Call, fact: Rebinding, context: FixContext, applicability: Applicability
    ) -> Replacement | None:
        args = [a.value for a in call.args if a.keyword is None]
        if len(args) != 3 or len(call.args) != 3 or not (is_repeatable(args[0]) and is_repeatable(args[1])):
            return None
        bound = Bound(code(args[0]), code(args[1]), args[2])
        value = unwrapped(bound.value) or bound.value
        handed_over = fact.receiver_is_module and is_tensor(
            bound.value, context
        )  # with None helpers do different things
        called = call_helper(bound, value, context) if handed_over else None
        if called is not None:
            message = f"Copy into `{bound.attribute}` through `{context.dialect.module}.{context.dialect.function}`"
            return Replacement(called, applicability, message)
        return Replacement(
            bind_once(
                bound, fact, context, rebind=lambda new: f"{code(call.func)}({bound.receiver}, {bound.name}, {new})"
            ),
            applicability,
            f"Bind `{bound.attribute}` once, then copy into it",
        )


def _asked_to_copy(statement: cst.SimpleStatementLine, call: cst.Call, context: FixContext) -> Statement:
    """The same call with one more argument, in the style of its argument list: one a line, or one after the other."""
    last = call.args[-1]
    trailing = isinstance(last.comma, cst.Comma)
    multiline = "\n" in code(call) and trailing
    argument = cst.Arg(
        cst.Name("True"),
        keyword=cst.Name("prefer_copy"),
        equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
    )
    if not multiline:
        return parse(
            written_call(
                code(call.func),
                [*(code(a.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for a in call.args), "prefer_copy=True"],
                context.width,
            )
        )[0]
    between = next((a.comma for a in call.args[:-1] if isinstance(a.comma, cst.Comma)), None)
    separator, end = _parted(last.comma, between) if isinstance(last.comma, cst.Comma) else (between, last.comma)
    args = [*call.args[:-1], last.with_changes(comma=separator), argument.with_changes(comma=end)]
    return statement.with_deep_changes(call, args=args)


def _parted(trailing: cst.Comma, between: cst.Comma | None) -> tuple[cst.Comma, cst.Comma]:
    """The comma after what was the last argument, with the comment that stands behind it, and the one that is last now."""
    space, other = trailing.whitespace_after, between.whitespace_after if between is not None else None
    if not isinstance(space, cst.ParenthesizedWhitespace) or not isinstance(other, cst.ParenthesizedWhitespace):
        return between or cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")), trailing
    before = space.with_changes(indent=other.indent, last_line=other.last_line)
    bare = space.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[])
    return trailing.with_changes(whitespace_after=before), trailing.with_changes(whitespace_after=bare)
