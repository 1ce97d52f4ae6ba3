"""One function cut out of its file as a LibCST module, and put back with a few statements more or less."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import libcst as cst

from rebindlint.index.classes import FunctionInfo
from rebindlint.model import RebindlintError

__all__ = ["MARK", "Cut", "Edit", "body_of", "cut", "insert", "marked_rows", "spliced", "statements"]

MARK = "# <mutant>"


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A function's own text: rows ``first`` to ``last`` (from 1, both included) of its file, without its margin."""

    function: FunctionInfo
    first: int
    last: int
    margin: str
    tree: cst.Module

    @property
    def node(self) -> cst.FunctionDef:
        node = self.tree.body[0]
        assert isinstance(node, cst.FunctionDef)
        return node


@dataclass(frozen=True, slots=True, eq=False)
class Edit:
    """``new`` takes the place of the function that was cut out: the function, and what is to stand behind it."""

    cut: Cut
    new: tuple[cst.BaseStatement, ...]


def cut(function: FunctionInfo) -> Cut:
    """Raises RebindlintError when the function does not stand in lines of its own."""
    node = function.node
    if isinstance(node, ast.Lambda):
        raise RebindlintError(f"{function.module.shown}:{node.lineno}: a lambda cannot be cut out")
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    assert node.end_lineno is not None
    lines = function.module.lines[first - 1 : node.end_lineno]
    margin = re.match(r"[ \t]*", lines[0]).group()  # type: ignore[union-attr]  # matches every text
    try:
        tree = cst.parse_module(textwrap.dedent("\n".join(lines)) + "\n")
    except cst.ParserSyntaxError as error:
        raise RebindlintError(f"{function.module.shown}:{first}: {error.message}") from error
    if len(tree.body) != 1 or not isinstance(tree.body[0], cst.FunctionDef):
        raise RebindlintError(f"{function.module.shown}:{first}: not a function in lines of its own")
    return Cut(function, first, node.end_lineno, margin, tree)


def spliced(text: str, edits: Iterable[Edit], *, appended: str = "") -> str:
    """``text`` with the edits of its functions, and ``appended`` as statements at the end of the module."""
    lines = re.split(r"\r\n|\n|\r", text)
    for edit in sorted(edits, key=lambda e: -e.cut.first):
        code = edit.cut.tree.with_changes(body=edit.new).code
        lines[edit.cut.first - 1 : edit.cut.last] = textwrap.indent(code.rstrip("\n"), edit.cut.margin).split("\n")
    return "\n".join(lines) + (f"\n\n\n{appended}\n" if appended else "")


def statements(code: str, *, marked: bool = True) -> list[cst.BaseStatement]:
    """The statements of ``code``; those that end in a mark by themselves decide for all, else each gets one."""
    code = textwrap.dedent(code).strip("\n")
    if marked and MARK not in code:
        code = "\n".join(f"{line}  {MARK}" for line in code.split("\n"))
    return [s for s in cst.parse_module(code + "\n").body if isinstance(s, cst.BaseStatement)]


def body_of(node: cst.FunctionDef) -> Sequence[cst.BaseStatement]:
    """The statements of a function; a body on the line of its ``def`` becomes one of its own lines."""
    if isinstance(node.body, cst.IndentedBlock):
        return node.body.body
    return [cst.SimpleStatementLine([s]) for s in node.body.body if isinstance(s, cst.BaseSmallStatement)]


def insert(
    node: cst.FunctionDef, block: cst.CSTNode, index: int, new: Sequence[cst.BaseStatement], *, removed: int = 0
) -> cst.FunctionDef:
    """The function with ``new`` in front of statement ``index`` of ``block``, in place of ``removed`` statements."""
    assert isinstance(block, cst.IndentedBlock)
    body = [*block.body[:index], *new, *block.body[index + removed :]]
    found = node.deep_replace(block, block.with_changes(body=body or statements("pass")))
    assert isinstance(found, cst.FunctionDef)
    return found


def marked_rows(text: str, wanted: Callable[[str], bool] = lambda line: MARK in line) -> list[tuple[int, int]]:
    """First and last row of each innermost statement in whose lines a mark stands."""
    rows = [number for number, line in enumerate(text.split("\n"), 1) if wanted(line)]
    if not rows:
        return []
    spans = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.stmt)
    ]
    return [
        min((s for s in spans if s[0] <= row <= s[1]), key=lambda s: s[1] - s[0], default=(row, row)) for row in rows
    ]
