"""Where in a function a statement is sure to run, in both runs of the hook, under some configuration."""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from benchmarks.mutation.splice import body_of

__all__ = ["Position", "is_documentation", "leaves", "positions", "runs_anything", "written_attributes"]

_STATE = frozenset({"hasattr", "getattr", "vars"})
_WRITTEN = re.compile(r"\.(\w+)\s*(?::[^=\n]+)?=[^=]|del [\w.]+\.(\w+)|delattr\([\w.]+, [\"'](\w+)")
_MODULE = cst.Module([])


@dataclass(frozen=True, slots=True, eq=False)
class Position:
    """In front of statement ``index`` of ``block``; ``name`` is ``entry``, ``end`` or ``arm`` with a number."""

    name: str
    block: cst.IndentedBlock
    index: int


def positions(node: cst.FunctionDef, written: frozenset[str], objects: frozenset[str]) -> list[Position]:
    """The entry of a function, its end, and the first statement of each arm of a decision about the configuration.

    ``written`` are the attributes that something assigns after construction. What stands behind a decision about these,
    or about whether an attribute is there at all, may run in the first run only, and is left out. So is an arm whose
    condition depends on anything but attributes of ``objects`` and what stands outside the function: its caller may never
    make it true.
    """
    if not isinstance(node.body, cst.IndentedBlock):
        return []
    found: list[Position] = []
    _walk(_Scope(node, written, objects), node.body, found, "entry")
    arms = 0
    for i, position in enumerate(found):
        if position.name == "arm":
            arms += 1
            found[i] = Position(f"arm{arms}", position.block, position.index)
    return found


class _Scope:
    """What the names of a function stand for."""

    def __init__(self, function: cst.FunctionDef, written: frozenset[str], objects: frozenset[str]) -> None:
        self.written, self.objects = written, objects
        self.values: dict[str, list[ast.expr | None]] = {p.name.value: [None] for p in function.params.params}
        self.values.update({p.name.value: [None] for p in function.params.kwonly_params})
        for node in ast.walk(ast.parse(textwrap.dedent(_MODULE.code_for_node(function)))):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.values.setdefault(node.id, [])
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    for name in ast.walk(target):
                        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                            self.values.setdefault(name.id, []).append(node.value if name is target else None)

    def on_state(self, test: ast.expr, depth: int = 0) -> bool:
        """Whether it may come out otherwise in the second run: by an attribute that is (not) there, or was assigned."""
        for node in ast.walk(test):
            if isinstance(node, ast.Attribute) and (node.attr in self.written or node.attr == "__dict__"):
                return True
            if isinstance(node, ast.Call) and _name_of(node.func) in _STATE and not self._asks_for_unwritten(node):
                return True
            if isinstance(node, ast.Name) and depth < 3 and self._stands_for_state(node.id, depth):
                return True
            if isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute) and _none(node.comparators[-1]):
                return True
        return False

    def _asks_for_unwritten(self, call: ast.Call) -> bool:
        """``getattr(o, "x", None)`` of something that no code writes or takes away: there or not, it stays so."""
        name = call.args[1] if len(call.args) > 1 else None
        return isinstance(name, ast.Constant) and name.value not in self.written

    def _stands_for_state(self, name: str, depth: int) -> bool:
        """A local name; what a call of something else makes of a state does not count as one."""
        return any(
            self.on_state(value, depth + 1)
            for value in self.values.get(name, ())
            if value is not None and (not isinstance(value, ast.Call) or _name_of(value.func) in _STATE)
        )

    def is_configured(self, test: ast.expr, depth: int = 0) -> bool:
        """Whether it depends on attributes of the hook's objects and on what stands outside the function alone."""
        for node in ast.walk(test):
            if isinstance(node, ast.Name) and node.id not in self.objects and node.id in self.values:
                values = self.values[node.id]
                if len(values) != 1 or values[0] is None or depth > 3 or not self.is_configured(values[0], depth + 1):
                    return False
        return True


def _name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _walk(scope: _Scope, block: cst.IndentedBlock, found: list[Position], name: str) -> bool:
    """Adds the positions of a block. Gives back whether what follows the block still runs in both runs."""
    start = next((i for i, s in enumerate(block.body) if not (is_documentation(s) or _is_import(s))), len(block.body))
    if not _only_raises(block):
        found.append(Position(name, block, start))
    for i, statement in enumerate(block.body[start:], start):
        if leaves(statement):
            if name == "entry" and i > start and _is_return(statement):
                found.append(Position("end", block, i))
            return True
        if isinstance(statement, cst.If):
            if not _walk_if(scope, statement, found):
                return False
        elif isinstance(statement, cst.For | cst.With) and isinstance(statement.body, cst.IndentedBlock):
            if not _walk(scope, statement.body, found, "arm"):
                return False
        elif isinstance(statement, cst.Try | cst.While):
            return False
    if name == "entry" and len(block.body) > start:
        found.append(Position("end", block, len(block.body)))
    return True


def _walk_if(scope: _Scope, statement: cst.If, found: list[Position]) -> bool:
    branch: cst.If | cst.Else | None = statement
    while branch is not None:
        if isinstance(branch, cst.If):
            test = ast.parse(_MODULE.code_for_node(branch.test).strip(), mode="eval").body
            if scope.on_state(test):
                return not m.findall(statement, m.Return() | m.Raise() | m.Continue() | m.Break())
            if not scope.is_configured(test):
                return True
        if isinstance(branch.body, cst.IndentedBlock) and not _walk(scope, branch.body, found, "arm"):
            return False
        branch = branch.orelse if isinstance(branch, cst.If) else None
    return True


def written_attributes(text: str) -> frozenset[str]:
    """Names of the attributes that a module assigns anywhere but in constructors, judged by its lines."""
    found: set[str] = set()
    for part in re.split(r"^(?=[ \t]*(?:async[ \t]+)?def[ \t])", text, flags=re.M):
        head = re.match(r"[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)", part)
        if head is not None and head.group(1) not in ("__init__", "__post_init__", "create_weights"):
            found.update(name for names in _WRITTEN.findall(part) for name in names if name)
    return frozenset(found)


def is_documentation(statement: cst.CSTNode) -> bool:
    return m.matches(statement, m.SimpleStatementLine(body=[m.Expr(m.SimpleString() | m.ConcatenatedString())]))


def _is_import(statement: cst.CSTNode) -> bool:
    return m.matches(statement, m.SimpleStatementLine(body=[m.Import() | m.ImportFrom() | m.Global() | m.Nonlocal()]))


def leaves(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and m.matches(
        statement.body[-1], m.Return() | m.Raise() | m.Continue() | m.Break()
    )


def _is_return(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[-1], cst.Return)


def _only_raises(block: cst.IndentedBlock) -> bool:
    """The block ends in ``raise``: whatever it does is not seen again. (A hook's own body may end so under decisions.)"""
    return bool(block.body) and m.matches(block.body[-1], m.SimpleStatementLine(body=[m.ZeroOrMore(), m.Raise()]))


def runs_anything(node: cst.FunctionDef) -> bool:
    """Whether a function has statements other than documentation, ``pass`` and ``raise``."""
    idle = m.SimpleStatementLine(body=[m.Pass() | m.Raise() | m.Expr(m.Ellipsis())])
    return any(not is_documentation(s) and not m.matches(s, idle) for s in body_of(node))
