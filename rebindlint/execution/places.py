"""From syntax nodes to places in the source: rows and columns in characters, from 1."""

from __future__ import annotations

import ast

from rebindlint.index.modules import Module
from rebindlint.model import Place, Position

__all__ = ["place_of"]


def place_of(module: Module, node: ast.AST) -> Place:
    """The whole of a simple statement or expression; only the header of a compound statement."""
    row, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    end_row, end_column = getattr(node, "end_lineno", row) or row, getattr(node, "end_col_offset", column) or column
    header = _header_end(node)
    if header is not None:
        end_row, end_column = header
    lines = module.lines
    return Place(
        module.shown,
        Position(row, _characters(lines, row, column)),
        Position(end_row, _characters(lines, end_row, end_column)),
    )


def _header_end(node: ast.AST) -> tuple[int, int] | None:
    last: ast.AST | None = None
    if isinstance(node, (ast.If, ast.While)):
        last = node.test
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        last = node.iter
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        last = node.items[-1].optional_vars or node.items[-1].context_expr
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return node.lineno, node.col_offset + len("def ") + len(node.name)
    elif isinstance(node, (ast.Try, ast.TryStar)):
        return node.lineno, node.col_offset + len("try")
    if last is None:
        return None
    return getattr(last, "end_lineno", 1), getattr(last, "end_col_offset", 0)


def _characters(lines: list[str], row: int, column: int) -> int:
    if row > len(lines):
        return column + 1
    line = lines[row - 1]
    return column + 1 if line.isascii() else len(line.encode()[:column].decode("utf-8", "ignore")) + 1
