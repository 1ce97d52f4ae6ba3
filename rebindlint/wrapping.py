"""Source of new statements, on as many lines as the common formatters would give it."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

import libcst as cst

__all__ = ["argument", "assigned", "call", "called", "code", "condition", "nested"]

_EMPTY = cst.Module([])


def code(node: cst.CSTNode) -> str:
    return _EMPTY.code_for_node(node).strip()


def argument(value: cst.BaseExpression) -> str:
    """Source of a value that becomes an argument: parentheses that only let it span lines are not needed in a call."""
    text = code(value)
    bare = code(value.with_changes(lpar=[], rpar=[])) if value.lpar else text
    return _further_out(bare if bare.count("#") == text.count("#") else text)


def _further_out(text: str) -> str:
    """An expression that stood further inside: its further lines move to the left as far as it does."""
    first, *others = text.split("\n")
    if not others:
        return first
    if others[-1].lstrip(" ")[0] in ")]}":
        deeper = _indent(
            others[-1]
        )  # a bracket that is closed on a line of its own stands as far inside as the expression
    elif _is_open(first):
        return text  # aligned with something on the first line
    else:
        deeper = min(_indent(line) for line in others if line.strip()) // 4 * 4
    return "\n".join([first, *(line[min(deeper, _indent(line)) :] for line in others)])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _is_open(line: str) -> bool:
    """A bracket of the expression's own is still open at the end of the line."""
    bare = re.sub(r"\"[^\"]*\"|'[^']*'|#.*", "", line)
    return sum(bare.count(c) for c in "([{") > sum(bare.count(c) for c in ")]}")


def call(function: str, arguments: Sequence[str], width: int) -> str:
    """A call on one line, or its arguments on the next, or one a line."""
    joined = [_joined(text) for text in arguments]
    flat = f"{function}({', '.join(joined)})"
    if len(flat) <= width and "\n" not in flat:
        return flat + "\n"
    inner = f"    {', '.join(joined)}"
    if len(inner) <= width and "\n" not in inner:
        return f"{function}(\n{inner}\n)\n"
    fitting = (short if len(short) < width - 4 else text for short, text in zip(joined, arguments, strict=True))
    end = "," if len(arguments) > 1 else ""  # formatters take a comma behind a lone argument for a wish to keep it so
    lines = "".join(f"    {nested(text)}{end}\n" for text in fitting)
    return f"{function}(\n{lines})\n"


def _joined(text: str) -> str:
    """An expression of several lines on one, unless a comment or a trailing comma keeps it apart."""
    if "\n" not in text or "#" in text or "\\" in text or re.search(r",\s*\n\s*[)\]}]", text):
        return text
    flat = re.sub(r"\s*\n\s*", " ", text)
    flat = re.sub(r"([(\[{]) ", r"\1", re.sub(r" ([)\]}.])", r"\1", flat))
    try:
        same = ast.dump(ast.parse(flat, mode="eval")) == ast.dump(ast.parse(f"({text})", mode="eval"))
    except SyntaxError:
        return text
    return flat if same else text


def assigned(target: str, value: cst.BaseExpression, width: int) -> str:
    """``target = value`` as a line, or as a call that is wrapped."""
    text = f"{target} = {code(value) if value.lpar else _further_out(code(value))}"
    if len(text) <= width or "\n" in text or not isinstance(value, cst.Call) or value.lpar:
        return text + "\n"
    arguments = [code(a.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for a in value.args]
    return call(f"{target} = {code(value.func)}", arguments, width)


def called(function: str, value: cst.BaseExpression, width: int) -> str:
    """``function(value)`` for a suite one step further in; a value of several lines keeps them."""
    return nested(call(function, [argument(value)], width).rstrip())


def condition(parts: Sequence[str], width: int) -> str:
    """``if a and b:``, or one part a line."""
    flat = f"if {' and '.join(parts)}:"
    if len(flat) <= width:
        return flat
    inner = "\n    and ".join(parts)
    return f"if (\n    {inner}\n):"


def nested(text: str) -> str:
    """Source that moves one step to the right: its further lines move along."""
    return text.replace("\n", "\n    ")
