"""The fix of one statement: cut out, rewritten by the fixers of all its findings, and put back as text edits."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import libcst as cst

from rebindlint.imports import Imports, statements_of
from rebindlint.index.classes import FunctionInfo
from rebindlint.index.modules import Imported, Module
from rebindlint.model import Applicability, Dialect, Edit, Fix, Hazard, Position, Rebinding, Value
from rebindlint.origins import Origins
from rebindlint.plugin import FixContext, Fixer, Replacement
from rebindlint.rewriting import Statement, bound_by, spread
from rebindlint.splice import (
    column_of,
    function_around,
    indentation_of,
    parse_alone,
    place_of_whole,
    render,
    source_of,
    stands_alone,
    step_of,
    temporaries,
    with_comments,
)
from rebindlint.surroundings import (
    bound_elsewhere,
    is_deleted_first,
    is_filled_later,
    known_present,
    plainly_bound,
    starts_as_none,
)

if TYPE_CHECKING:
    from rebindlint.index import Index

__all__ = ["Proposal", "Task"]

_WIDTH = 88  # what vLLM's and SGLang's formatters wrap at
_ORDER = (Applicability.SAFE, Applicability.UNSAFE, Applicability.DISPLAY)


@dataclass(frozen=True, slots=True)
class Task:
    fact: Rebinding
    fixer: Fixer


class Proposal:
    """Fixes for statements of one module."""

    def __init__(self, module: Module, index: Index) -> None:
        self._module = module
        self._index = index

    def fix(self, tasks: Sequence[Task]) -> Fix | None:
        """All tasks are about one statement; they are done together or not at all."""
        module = self._module
        node = self._node(tasks) if all(_is_about_a_tensor(task.fact) for task in tasks) else None
        if node is None or not stands_alone(module, node):
            return None
        inside = function_around(module, node)
        if inside is None or any(bound_elsewhere(inside, node, task.fact.cell.name) for task in tasks):
            return None
        if is_deleted_first(inside, node):
            return None  # nothing is there to be copied into
        try:
            statement = parse_alone(module, node)
        except (cst.ParserSyntaxError, RecursionError):
            return None
        indent = indentation_of(module, node)
        newline = "\r\n" if "\r\n" in module.text else "\n"
        imports = self._imports(newline)
        origins = Origins(inside, module, self._index)
        context = FixContext(
            self._dialect(tasks, node),
            lambda wanted, function: imports.local_name(wanted, function, inside, node.lineno),
            temporaries(inside),
            lambda stem: _unused(stem, module.text),
            lambda expression: expression in known_present(inside, node) or _is_tensor(expression, origins),
            lambda receiver, name: starts_as_none(self._index, module, inside, receiver, name),
            step_of(module, inside),
            _WIDTH - len(indent),
        )
        replacement = _rewritten(statement, tasks, context)
        if replacement is None:
            return None
        if is_filled_later(inside, node) or _cannot_be_copied(node, tasks, origins):
            return None  # what is copied here would not get what is written there
        content = with_comments(
            source_of(module, node), render(replacement.statements, indent, context.indent, newline), indent, newline
        )
        edit = Edit(place_of_whole(module, node), content)
        return Fix(replacement.applicability, replacement.message, tuple(sorted((edit, *imports.edits))))

    def _imports(self, newline: str) -> Imports:
        module = self._module
        wanted = self._index.dialect_for(module.name).module
        cyclic = bool(wanted) and self._index.creates_cycle(module.name, wanted)
        own = (module.name, module.shown, module.is_package, module.tree, module.lines)
        return Imports(*own, newline, cyclic, self._is_same)

    def _is_same(self, imported: Imported, wanted: Imported) -> bool:
        """Directly, or handed on by a package; what is renamed on the way is not recognised."""
        if imported == wanted or imported.name != wanted.name:
            return imported == wanted
        found = self._index.imported(imported)
        return isinstance(found, FunctionInfo) and found is self._index.imported(wanted)

    def _dialect(self, tasks: Sequence[Task], node: ast.stmt) -> Dialect:
        """The tree's helper; none where the file also binds the attribute to plain tensors, which a registered parameter would refuse."""
        text = self._module.text
        names = {task.fact.cell.name for task in tasks if not task.fact.cell.registered}
        several = {name for name in names if text.count(f".{name}") > 1}  # cheaper than looking at every statement
        if several and any(name in several for name in plainly_bound(self._module.tree, node)):
            return Dialect()
        return self._index.dialect_for(self._module.name)

    def _node(self, tasks: Sequence[Task]) -> ast.stmt | None:
        """The statement itself; for fixers of guards the innermost ``if`` around it whose condition skipped it, if one did."""
        fact, fixer = tasks[0].fact, tasks[0].fixer
        start = fact.statement.start
        statements = statements_of(self._module.tree)
        if fixer.scope == "guard" and len(tasks) > 1:
            return None
        if fixer.scope == "guard" and fact.guarded is not None:
            row = fact.guarded.start.row
            around = [n for n in statements if isinstance(n, ast.If) and n.test.lineno == row and _spans(n, start)]
            return around[-1] if around else None
        at = (n for n in statements if n.lineno == start.row and not hasattr(n, "body"))
        return next((n for n in at if column_of(self._module, n) == start.column), None)


def _is_about_a_tensor(fact: Rebinding) -> bool:
    """Lists, tuples and dictionaries that are bound as a whole, and what only may be a tensor, cannot be copied."""
    return fact.certain and (fact.hazard is not Hazard.ADDRESS or fact.value is not Value.ABSENT)


def _cannot_be_copied(node: ast.stmt, tasks: Sequence[Task], origins: Origins) -> bool:
    """Into memory whose elements share places nothing can be copied; into memory that was there before, nothing that is ordered otherwise."""
    if any(task.fact.overlapping or task.fact.prefer_copy_unsupported for task in tasks):
        return False  # nothing is copied that was not copied before
    existed = any(task.fact.existed_before for task in tasks)
    return any(
        origins.may_repeat(value, item) or (existed and origins.may_be_in_private_format(value, item))
        for value, item in _values(node)
    )


def _values(node: ast.stmt) -> Iterator[tuple[ast.expr, int | None]]:
    """What a statement binds attributes to; with the item of it, where it is unpacked."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple | ast.List):
        yield from ((node.value, i) for i, t in enumerate(node.targets[0].elts) if not isinstance(t, ast.Name))
    elif isinstance(node, ast.Assign):
        yield node.value, None
    elif isinstance(node, ast.If):
        for inner in node.body:
            yield from _values(inner)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield from ((value, None) for value in (*node.value.args, *(k.value for k in node.value.keywords)))


def _is_tensor(expression: str, origins: Origins) -> bool:
    try:
        return origins.is_surely_tensor(ast.parse(expression, mode="eval").body)
    except SyntaxError:
        return False


def _spans(node: ast.stmt, position: Position) -> bool:
    return node.lineno <= position.row <= (node.end_lineno or node.lineno)


def _unused(stem: str, text: str) -> str:
    """``stem``, or the first numbered form of it that does not occur in the text."""
    names = (stem if number == 1 else f"{stem}_{number}" for number in itertools.count(1))
    return next(name for name in names if not re.search(rf"\b{name}\b", text))


def _rewritten(statement: Statement, tasks: Sequence[Task], context: FixContext) -> Replacement | None:
    """One target: by its fixer. A computed name that stands for several attributes: once, with the weakest facts. A tuple: target by target."""
    parts = spread(statement, context)
    if parts is not None:
        return _part_by_part(*parts, tasks, context)
    if len(tasks) > 1:
        bound = bound_by(statement)
        if bound is None or bound.plain_name or len({task.fixer.code for task in tasks}) > 1:
            return None
    return tasks[0].fixer.fix(statement, _weakest([task.fact for task in tasks]), context)


def _part_by_part(
    unpack: Statement, parts: Sequence[Statement], tasks: Sequence[Task], context: FixContext
) -> Replacement | None:
    left = {task.fact.cell.name: task for task in tasks}
    if len(left) < len(tasks):
        return None
    statements: list[Statement] = [unpack]
    done: list[Replacement] = []
    for part in parts:
        bound = bound_by(part)
        task = left.pop(bound.plain_name, None) if bound is not None else None
        if task is None:
            statements.append(part)
            continue
        replacement = task.fixer.fix(part, task.fact, context)
        if replacement is None:
            return None
        done.append(replacement)
        statements += replacement.statements
    if left:
        return None
    applicability = max((r.applicability for r in done), key=_ORDER.index)
    return Replacement(statements, applicability, "; ".join(dict.fromkeys(r.message for r in done)))


def _weakest(facts: Sequence[Rebinding]) -> Rebinding:
    """What holds for all of them."""
    first, *others = facts
    if not others:
        return first
    origins = {fact.value for fact in facts}
    return replace(
        first,
        value=first.value if len(origins) == 1 else Value.UNKNOWN,
        certain=all(f.certain for f in facts),
        weight_dependent=any(f.weight_dependent for f in facts),
        from_loading=any(f.from_loading for f in facts),
        receiver_is_module=all(f.receiver_is_module for f in facts),
        existed_before=any(f.existed_before for f in facts),
        may_alias=any(f.may_alias for f in facts),
        changes_strides=any(f.changes_strides for f in facts),
        same_layout=all(f.same_layout for f in facts),
        zeroed=all(f.zeroed for f in facts),
        value_is_parameter=all(f.value_is_parameter for f in facts),
    )
