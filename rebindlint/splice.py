"""Statements cut out of a file as LibCST nodes, and put back as text in the file's own style."""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Callable, Sequence

import libcst as cst

from rebindlint.imports import functions
from rebindlint.index.modules import FunctionNode, Module, descend
from rebindlint.model import Place, Position
from rebindlint.rewriting import Statement

__all__ = [
    "column_of",
    "function_around",
    "indentation_of",
    "parse_alone",
    "place_of_whole",
    "render",
    "source_of",
    "stands_alone",
    "step_of",
    "temporaries",
    "with_comments",
]


def column_of(module: Module, node: ast.stmt) -> int:
    line = module.lines[node.lineno - 1]
    return len(line.encode()[: node.col_offset].decode("utf-8", "ignore")) + 1


def _end(module: Module, node: ast.stmt) -> Position:
    row = node.end_lineno or node.lineno
    return Position(row, len(module.lines[row - 1].encode()[: node.end_col_offset or 0].decode("utf-8", "ignore")) + 1)


def place_of_whole(module: Module, node: ast.stmt) -> Place:
    return Place(module.shown, Position(node.lineno, column_of(module, node)), _end(module, node))


def stands_alone(module: Module, node: ast.stmt) -> bool:
    """No other statement shares its lines, and no text inside it spans several, which indenting would change."""
    before = module.lines[node.lineno - 1][: column_of(module, node) - 1]
    end = _end(module, node)
    after = module.lines[end.row - 1][end.column - 1 :].strip()
    alone = not before.strip() and (not after or after.startswith("#"))
    texts = (n for n in descend(node) if isinstance(n, ast.Constant | ast.JoinedStr) and n.end_lineno != n.lineno)
    return alone and not any(True for _ in texts)


def function_around(module: Module, node: ast.stmt) -> FunctionNode | None:
    around = [
        f for f in functions(module.tree) if f.lineno < node.lineno and (node.end_lineno or 0) <= (f.end_lineno or 0)
    ]
    return max(around, key=lambda f: f.lineno) if around else None


def indentation_of(module: Module, node: ast.stmt) -> str:
    line = module.lines[node.lineno - 1]
    return line[: len(line) - len(line.lstrip())]


def temporaries(inside: FunctionNode) -> Callable[[str], str]:
    taken = {n.id for n in descend(inside) if isinstance(n, ast.Name)} | {
        a.arg for a in descend(inside) if isinstance(a, ast.arg)
    }

    def temporary(stem: str) -> str:
        name, number = stem, 2
        while name in taken:
            name, number = f"{stem}_{number}", number + 1
        taken.add(name)
        return name

    return temporary


def step_of(module: Module, inside: FunctionNode) -> str:
    """One step of indentation as the function has it."""
    first = inside.body[0]
    outer = module.lines[inside.lineno - 1][: inside.col_offset]
    inner = module.lines[first.lineno - 1][: first.col_offset]
    step = inner.removeprefix(outer)
    return step if step and not step.strip() else "    "


def parse_alone(module: Module, node: ast.stmt) -> Statement:
    """The statement parsed alone. Raises what LibCST raises."""
    return cst.parse_module(source_of(module, node)).body[0]


def source_of(module: Module, node: ast.stmt) -> str:
    """The statement's lines up to its end, dedented."""
    lines = module.lines[node.lineno - 1 : node.end_lineno]
    lines[-1] = lines[-1][: _end(module, node).column - 1]
    return textwrap.dedent("\n".join(lines)) + "\n"


def render(statements: Sequence[Statement], indent: str, step: str, newline: str) -> str:
    """Source of the statements: the first line without indentation, because it stands there already."""
    text = cst.Module([*statements], default_indent="    ").code.rstrip("\n")
    lines = []
    for number, line in enumerate(text.split("\n")):
        bare = line.lstrip(" ")
        depth, rest = divmod(len(line) - len(bare), 4)
        lines.append(((indent if number else "") + step * depth + " " * rest + bare) if bare else "")
    return newline.join(lines)


def with_comments(old: str, new: str, indent: str, newline: str) -> str:
    """The new source, with the comments of the old one that it has lost on lines of their own above it."""
    kept = _comments(indent + new)  # its first line is put where the old one began
    lost = []
    for comment in _comments(old):
        if comment in kept:
            kept.remove(comment)
        else:
            lost.append(comment)
    lines = [f"{'' if number == 0 else indent}{comment}" for number, comment in enumerate(lost)]
    return newline.join([*lines, (indent if lines else "") + new])


def _comments(source: str) -> list[str]:
    dedented = textwrap.dedent(re.sub(r"\r\n|\r", "\n", source))
    try:
        return [
            t.string for t in tokenize.generate_tokens(io.StringIO(dedented).readline) if t.type == tokenize.COMMENT
        ]
    except (tokenize.TokenError, IndentationError):
        return []
