"""From findings to edits, and from edits to new text."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import libcst as cst

from rebindlint import registry
from rebindlint.imports import Imports, functions, statements_of
from rebindlint.index.modules import FunctionNode, Module
from rebindlint.model import Diagnostic, Edit, Fix, Place, Position, Rebinding
from rebindlint.plugin import FixContext, Fixer
from rebindlint.rewriting import Statement
from rebindlint.texts import edited

if TYPE_CHECKING:
    from rebindlint.config import Config
    from rebindlint.index import Index

__all__ = ["Applied", "apply_fixes", "propose"]

Read = Callable[[str], str]
_WIDTH = 88  # what vLLM's and SGLang's formatters wrap at


@dataclass(frozen=True, slots=True)
class Applied:
    """``texts``: new text of each changed file; ``skipped`` overlap with one that was applied, ``refused`` would have broken their file."""

    texts: Mapping[str, str]
    fixed: tuple[Diagnostic, ...] = ()
    skipped: tuple[Diagnostic, ...] = ()
    refused: tuple[Diagnostic, ...] = ()


def propose(diagnostics: Sequence[Diagnostic], index: Index, config: Config, read: Read) -> list[Diagnostic]:
    """The same diagnostics, with a fix where there is a right one. Facts that share a statement are fixed together or not at all."""
    shared: dict[Place, int] = {}
    for diagnostic in diagnostics:
        shared[diagnostic.place] = shared.get(diagnostic.place, 0) + 1
    fixers = registry.fixers()
    found = []
    for diagnostic in diagnostics:
        fixer = fixers.get(diagnostic.code)
        fact = diagnostic.fact
        fix = None
        if fixer is not None and fact is not None and shared[diagnostic.place] == 1:
            fix = _Proposal(fact, index, config).fix(fixer)
        found.append(replace(diagnostic, fix=fix) if fix is not None else diagnostic)
    return found


class _Proposal:
    """One fact's fix: the statement cut out, rewritten, and put back as text edits."""

    def __init__(self, fact: Rebinding, index: Index, config: Config) -> None:
        self._fact = fact
        self._index = index
        self._module = index.module(fact.module)

    def fix(self, fixer: Fixer) -> Fix | None:
        module = self._module
        if module is None:
            return None
        node = self._node(module, fixer)
        if node is None or not _stands_alone(module, node):
            return None
        inside = _function_around(module, node)
        if inside is None or _bound_elsewhere(inside, node, self._fact):
            return None
        line = module.lines[node.lineno - 1]
        indent = line[: len(line) - len(line.lstrip())]
        newline = "\r\n" if "\r\n" in module.text else "\n"
        dialect = self._index.dialect_for(module.name)
        cyclic = bool(dialect.module) and self._index.creates_cycle(module.name, dialect.module)
        imports = Imports(module.name, module.shown, module.is_package, module.tree, module.lines, newline, cyclic)
        context = FixContext(
            dialect,
            lambda wanted, function: imports.local_name(wanted, function, inside),
            _temporaries(inside),
            _step(module, inside),
            _WIDTH - len(indent),
        )
        try:
            statement = _parse(module, node)
        except (cst.ParserSyntaxError, RecursionError):
            return None
        replacement = fixer.fix(statement, self._fact, context)
        if replacement is None:
            return None
        content = _render(replacement.statements, indent, context.indent, newline)
        edit = Edit(_whole(module, node), content)
        return Fix(replacement.applicability, replacement.message, tuple(sorted((edit, *imports.edits))))

    def _node(self, module: Module, fixer: Fixer) -> ast.stmt | None:
        """The statement itself, or the innermost ``if`` around it whose condition is the guard."""
        start = self._fact.statement.start
        statements = list(statements_of(module.tree))
        if fixer.scope == "guard":
            guard = self._fact.guarded
            if guard is None:
                return None
            around = [
                n
                for n in statements
                if isinstance(n, ast.If)
                and n.test.lineno == guard.start.row
                and n.lineno <= start.row <= (n.end_lineno or 0)
            ]
            return around[-1] if around else None
        return next(
            (
                n
                for n in statements
                if n.lineno == start.row and _column(module, n) == start.column and not hasattr(n, "body")
            ),
            None,
        )


def _column(module: Module, node: ast.stmt) -> int:
    line = module.lines[node.lineno - 1]
    return len(line.encode()[: node.col_offset].decode("utf-8", "ignore")) + 1


def _end(module: Module, node: ast.stmt) -> Position:
    row = node.end_lineno or node.lineno
    return Position(row, len(module.lines[row - 1].encode()[: node.end_col_offset or 0].decode("utf-8", "ignore")) + 1)


def _whole(module: Module, node: ast.stmt) -> Place:
    return Place(module.shown, Position(node.lineno, _column(module, node)), _end(module, node))


def _stands_alone(module: Module, node: ast.stmt) -> bool:
    """No other statement shares its lines, and no text inside it spans several, which indenting would change."""
    before = module.lines[node.lineno - 1][: _column(module, node) - 1]
    end = _end(module, node)
    after = module.lines[end.row - 1][end.column - 1 :].strip()
    alone = not before.strip() and (not after or after.startswith("#"))
    texts = (n for n in ast.walk(node) if isinstance(n, ast.Constant | ast.JoinedStr) and n.end_lineno != n.lineno)
    return alone and not any(True for _ in texts)


def _function_around(module: Module, node: ast.stmt) -> FunctionNode | None:
    around = [
        f for f in functions(module.tree) if f.lineno < node.lineno and (node.end_lineno or 0) <= (f.end_lineno or 0)
    ]
    return max(around, key=lambda f: f.lineno) if around else None


def _bound_elsewhere(inside: FunctionNode, node: ast.stmt, fact: Rebinding) -> bool:
    """Another statement of the function binds the same attribute: one of them alone cannot be changed."""
    name = fact.cell.name
    count = sum(
        1
        for n in ast.walk(inside)
        if isinstance(n, ast.Attribute)
        and n.attr == name
        and isinstance(n.ctx, ast.Store)
        and not node.lineno <= n.lineno <= (node.end_lineno or 0)
    )
    return count > 0


def _temporaries(inside: FunctionNode) -> Callable[[str], str]:
    taken = {n.id for n in ast.walk(inside) if isinstance(n, ast.Name)} | {
        a.arg for a in ast.walk(inside) if isinstance(a, ast.arg)
    }

    def temporary(stem: str) -> str:
        name, number = stem, 2
        while name in taken:
            name, number = f"{stem}_{number}", number + 1
        taken.add(name)
        return name

    return temporary


def _step(module: Module, inside: FunctionNode) -> str:
    """One step of indentation as the function has it."""
    first = inside.body[0]
    outer = module.lines[inside.lineno - 1][: inside.col_offset]
    inner = module.lines[first.lineno - 1][: first.col_offset]
    step = inner.removeprefix(outer)
    return step if step and not step.strip() else "    "


def _parse(module: Module, node: ast.stmt) -> Statement:
    """The statement's lines, dedented and parsed alone."""
    lines = module.lines[node.lineno - 1 : node.end_lineno]
    end = _end(module, node)
    lines[-1] = lines[-1][: end.column - 1]
    parsed = cst.parse_module(textwrap.dedent("\n".join(lines)) + "\n")
    statement = parsed.body[0]
    return statement


def _render(statements: Sequence[Statement], indent: str, step: str, newline: str) -> str:
    """Source of the statements: the first line without indentation, because it stands there already."""
    text = cst.Module([*statements], default_indent="    ").code.rstrip("\n")
    lines = []
    for number, line in enumerate(text.split("\n")):
        bare = line.lstrip(" ")
        depth, rest = divmod(len(line) - len(bare), 4)
        lines.append(((indent if number else "") + step * depth + " " * rest + bare) if bare else "")
    return newline.join(lines)


# ---- applying


@dataclass(slots=True)
class _File:
    edits: set[Edit] = field(default_factory=set)
    fixed: list[Diagnostic] = field(default_factory=list)


def apply_fixes(diagnostics: Sequence[Diagnostic], read: Read) -> Applied:
    """Each fix whole or not at all; of two that overlap the first in the source wins, the other is left for the next round."""
    files: dict[str, _File] = {}
    skipped: list[Diagnostic] = []
    refused: list[Diagnostic] = []
    for diagnostic in sorted(diagnostics, key=lambda d: d.sort_key):
        assert diagnostic.fix is not None
        if any(_conflicts(edit, files.get(edit.place.filename, _File()).edits) for edit in diagnostic.fix.edits):
            skipped.append(diagnostic)
            continue
        trial = {e.place.filename: {*files.get(e.place.filename, _File()).edits} for e in diagnostic.fix.edits}
        for edit in diagnostic.fix.edits:
            trial[edit.place.filename].add(edit)
        if not all(_is_sound(read(shown), edited(read(shown), sorted(edits))) for shown, edits in trial.items()):
            refused.append(diagnostic)
            continue
        for shown, edits in trial.items():
            file = files.setdefault(shown, _File())
            file.edits = edits
        files[diagnostic.place.filename].fixed.append(diagnostic)
    texts = {shown: edited(read(shown), sorted(file.edits)) for shown, file in files.items()}
    fixed = tuple(d for file in files.values() for d in file.fixed)
    return Applied({s: t for s, t in texts.items() if t != read(s)}, fixed, tuple(skipped), tuple(refused))


def _conflicts(edit: Edit, others: set[Edit]) -> bool:
    """Two edits touch the same text; the same edit twice is one."""
    for other in others:
        if edit == other:
            continue
        if edit.place.start < other.place.end and other.place.start < edit.place.end:
            return True
        if edit.place.start == other.place.start:
            return True
    return False


_GLOBALS = frozenset(dir(__builtins__)) if not isinstance(__builtins__, dict) else frozenset(__builtins__)


def _is_sound(before: str, after: str) -> bool:
    """The new text parses, and uses no name at all that the old one did not use or that nothing binds."""
    try:
        tree = ast.parse(after)
    except (SyntaxError, ValueError, RecursionError):
        return False
    old = set(re.findall(r"\w+", before))
    bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= {
        a.asname or a.name.split(".")[0]
        for n in ast.walk(tree)
        if isinstance(n, ast.Import | ast.ImportFrom)
        for a in n.names
    }
    bound |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return all(name in bound or name in _GLOBALS for name in used - old)
