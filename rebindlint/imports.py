"""Where an import that a fix needs goes, and under which name the function is called then."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rebindlint.index.modules import FunctionNode, Imported, imported_names
from rebindlint.model import Edit, Place, Position
from rebindlint.texts import edited

__all__ = ["Imports", "without_unused"]


_WIDTH = 88  # what vLLM's and SGLang's formatters wrap at


@dataclass(slots=True)
class Imports:
    """The imports of one file, and what has to be added for the fixes of one function in it.

    ``cyclic`` says that a top-level import of the function's module would close a cycle, ``means(imported, wanted)`` that both are one
    function: packages hand on what their modules define.
    """

    module: str
    shown: str
    is_package: bool
    tree: ast.Module
    lines: list[str]
    newline: str
    cyclic: bool
    means: Callable[[Imported, Imported], bool] = Imported.__eq__
    edits: list[Edit] = field(default_factory=list)

    def local_name(self, wanted: str, function: str, inside: FunctionNode | None, row: int | None = None) -> str:
        """The name under which ``wanted.function`` can be called inside that function, at ``row`` or anywhere; notes the edit that it needs."""
        if wanted == self.module:
            return function
        local = [n for n in inside.body if row is None or n.lineno < row] if inside is not None else []
        for node in (*local, *self.tree.body):
            for alias, imported in imported_names(node, self.module, self.is_package):
                if self.means(imported, Imported(wanted, function)) and (
                    node in local or inside is None or alias not in self._names(wanted, function, alias, inside)
                ):
                    return alias
        taken = self._names(wanted, function, function, self.tree)
        others = (f"_{function}_{number}" for number in itertools.count(2))  # two underscores in front would be mangled
        name = next(n for n in itertools.chain((function, f"_{function}"), others) if n not in taken)
        clause = function if name == function else f"{function} as {name}"
        edit = self._inside(wanted, clause, inside) if self.cyclic and inside is not None else self._top(wanted, clause)
        if edit not in self.edits:
            self.edits.append(edit)
        return name

    def _names(self, wanted: str, function: str, sought: str, scope: ast.AST) -> set[str]:
        """Names that are bound in the scope to something else; none when the one that is sought does not even occur in the file."""
        if not any(sought in line for line in self.lines):
            return set()
        found: set[str] = set()
        for node in ast.walk(scope):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                imports = imported_names(node, self.module, self.is_package)
                found |= {name for name, imported in imports if not self.means(imported, Imported(wanted, function))}
        return found

    def _insert(self, row: int, text: str) -> Edit:
        """A line of its own in front of ``row`` (from 1; one past the end appends)."""
        if row > len(self.lines) or (row == len(self.lines) and not self.lines[-1]):
            row = max(len(self.lines), 1)
            last = self.lines[-1] if self.lines else ""
            lead = self.newline if last else ""
            position = Position(row, len(last) + 1)
            return Edit(Place(self.shown, position, position), lead + text + self.newline)
        position = Position(row, 1)
        return Edit(Place(self.shown, position, position), text + self.newline)

    def _inside(self, wanted: str, clause: str, inside: FunctionNode) -> Edit:
        body = inside.body
        first = (
            body[1]
            if len(body) > 1 and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
            else body[0]
        )
        indent = self.lines[first.lineno - 1][: first.col_offset]
        row = first.lineno
        while self.lines[row - 2].lstrip().startswith("#") or not self.lines[row - 2].strip():
            row -= 1  # a comment belongs to the statement below it
        return self._insert(row, f"{indent}from {wanted} import {clause}")

    def _top(self, wanted: str, clause: str) -> Edit:
        imports = [n for n in self.tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
        same = [n for n in imports if isinstance(n, ast.ImportFrom) and not n.level and n.module == wanted]
        for node in same:
            extended = self._extend(node, clause)
            if extended is not None:
                return extended
        row = self._row(wanted, imports)
        gap = self.newline if self._starts_a_section(wanted, imports) else ""
        return self._insert(row, f"{gap}from {wanted} import {clause}")

    def _starts_a_section(self, wanted: str, imports: list[ast.Import | ast.ImportFrom]) -> bool:
        """The file's own package is imported for the first time, behind others: import sorters want a blank line there."""
        top = wanted.split(".")[0]
        tops = {
            (node.module or "").split(".")[0] if isinstance(node, ast.ImportFrom) else alias.name.split(".")[0]
            for node in imports
            for alias in node.names
        }
        relative = any(isinstance(node, ast.ImportFrom) and node.level for node in imports)
        return bool(imports) and not relative and top not in tops and top == self.module.split(".")[0]

    def _row(self, wanted: str, imports: list[ast.Import | ast.ImportFrom]) -> int:
        """After the last import of the same top package that sorts before it; else after the last import, or the docstring."""
        top = wanted.split(".")[0]
        related = [
            n
            for n in imports
            if isinstance(n, ast.ImportFrom) and not n.level and (n.module or "").split(".")[0] == top
        ]
        before = [n for n in related if (n.module or "") <= wanted]
        if before:
            return (before[-1].end_lineno or before[-1].lineno) + 1
        if related:
            return related[0].lineno
        if imports:
            return (imports[-1].end_lineno or imports[-1].lineno) + 1
        body = self.tree.body
        if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            return (body[0].end_lineno or body[0].lineno) + 1
        return body[0].lineno if body else 1

    def _extend(self, node: ast.ImportFrom, clause: str) -> Edit | None:
        """One more name in an import that is there, in sorted position."""
        if any(alias.name == "*" for alias in node.names):
            return None
        after = next((a for a in node.names if _sorted_by(a.name) > _sorted_by(clause)), None)
        on_own_lines = len({a.lineno for a in node.names}) == len(node.names) and (node.end_lineno or 0) > node.lineno
        if on_own_lines and node.names[0].lineno > node.lineno:
            alias = after or node.names[-1]
            indent = self.lines[alias.lineno - 1][: alias.col_offset]
            if after is not None:
                return self._insert(after.lineno, f"{indent}{clause},")
            end = Position(alias.end_lineno or alias.lineno, (alias.end_col_offset or 0) + 1)
            return Edit(Place(self.shown, end, end), f",{self.newline}{indent}{clause}")
        if self._is_full(node, clause):
            return self._one_a_line(node, clause)
        if after is not None:
            start = Position(after.lineno, after.col_offset + 1)
            return Edit(Place(self.shown, start, start), f"{clause}, ")
        last = node.names[-1]
        end = Position(last.end_lineno or last.lineno, (last.end_col_offset or 0) + 1)
        return Edit(Place(self.shown, end, end), f", {clause}")

    def _is_full(self, node: ast.ImportFrom, clause: str) -> bool:
        """One more name would make the line too long; a line with something else on it stays one line."""
        line = self.lines[node.lineno - 1]
        whole = (
            node.lineno == node.end_lineno and node.end_col_offset == len(line) and "(" not in line and "\\" not in line
        )
        return whole and len(line) + len(f", {clause}") > _WIDTH

    def _one_a_line(self, node: ast.ImportFrom, clause: str) -> Edit:
        names = [f"{a.name} as {a.asname}" if a.asname else a.name for a in node.names]
        at = next((i for i, a in enumerate(node.names) if _sorted_by(a.name) > _sorted_by(clause)), len(names))
        names.insert(at, clause)
        lines = [f"({self.newline}", *(f"    {name},{self.newline}" for name in names), ")"]
        start = Position(node.lineno, node.names[0].col_offset + 1)
        return Edit(Place(self.shown, start, Position(node.lineno, (node.end_col_offset or 0) + 1)), "".join(lines))


def _sorted_by(name: str) -> tuple[int, str]:
    """Import sorters put constants before classes before everything else."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, name.lower()


def without_unused(before: str, after: str, shown: str) -> str:
    """``after`` without the imports from torch that nothing in it uses any more, though ``before`` did.

    Other imports may be there for other modules to import from this one, and so may those of a package.
    """
    if shown.endswith("__init__.py") or "from torch" not in after:
        return after
    old, new = _used(ast.parse(before)), ast.parse(after)
    unused = old - _used(new)
    nodes = [
        n for n in new.body if isinstance(n, ast.ImportFrom) and not n.level and (n.module or "").startswith("torch")
    ]
    lines = re.split(r"\r\n|\r|\n", after)
    edits = [edit for node in nodes if (edit := _without(node, unused, lines, shown)) is not None]
    return edited(after, edits) if edits else after


def _used(tree: ast.Module) -> set[str]:
    """Names that are read, and words of texts, which may be annotations or ``__all__``."""
    words = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words.update(re.findall(r"\w+", node.value))
    return words


def _without(node: ast.ImportFrom, unused: set[str], lines: list[str], shown: str) -> Edit | None:
    """The edit that drops the unused names of an import on one line, with nothing else on it."""
    line = lines[node.lineno - 1]
    if not any(a.name in unused and not a.asname for a in node.names) or node.end_col_offset != len(line):
        return None
    if node.end_lineno != node.lineno or node.col_offset or "(" in line:
        return None
    kept = [a for a in node.names if a.asname or a.name not in unused]
    row = node.lineno
    if kept:
        text = ", ".join(f"{a.name} as {a.asname}" if a.asname else a.name for a in kept)
        return Edit(Place(shown, Position(row, node.names[0].col_offset + 1), Position(row, len(line) + 1)), text)
    alone = row > 1 and not lines[row - 2].strip() and row < len(lines) and not lines[row].strip()
    return Edit(Place(shown, Position(row, 1), Position(row + (2 if alone else 1), 1)), "")


def statements_of(tree: ast.Module) -> Iterator[ast.stmt]:
    """Every statement at any depth; expressions are not descended into."""
    stack: list[ast.stmt] = list(reversed(tree.body))
    while stack:
        node = stack.pop()
        yield node
        inner: list[ast.stmt] = []
        for block in ("body", "orelse", "finalbody"):
            inner.extend(getattr(node, block, ()))
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            inner.extend(part.body)
        stack.extend(reversed(inner))


def functions(tree: ast.Module) -> Iterator[FunctionNode]:
    return (node for node in statements_of(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
