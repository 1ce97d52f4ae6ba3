"""Every write in the hooks of a tree and in the functions that they call: the population of what was *not* flagged.

Found from syntax alone, with no help from the interpreter: what the interpreter overlooks must be in it as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rebindlint.config import Config
from rebindlint.discover import discover
from rebindlint.index import Index, build_index, find_hooks
from rebindlint.index.classes import ClassInfo, FunctionInfo
from rebindlint.index.modules import Module

__all__ = ["Write", "is_flagged", "writes_of"]

_HELPERS = frozenset(
    {"replace_parameter", "copy_or_rebind_param", "alias_or_bind_derived_param", "update_tensor_inplace"}
)
_NAMED = frozenset({"setattr", "delattr", "register_parameter", "register_buffer", *_HELPERS})
_IN_PLACE = frozenset({"copy_", "set_", "fill_", "zero_", "mul_", "div_", "add_", "sub_"})
_MAX_DEPTH = 6


@dataclass(frozen=True, slots=True)
class Write:
    """An attribute or slot that is bound, deleted or written in place; ``last`` is the last line of the statement."""

    path: str
    line: int
    last: int
    attribute: str
    hook: str

    @property
    def place(self) -> tuple[str, int, str]:
        return self.path, self.line, self.attribute


def writes_of(folder: Path, package: str) -> list[Write]:
    """The writes of a tree, each once, in the order of the source."""
    config = Config(root=folder)
    index = build_index(discover([package], config, cwd=folder).context, config)
    found: dict[tuple[str, int, str], Write] = {}
    seen: set[int] = set()
    for hook in find_hooks(index):
        for function in _reached(index, hook.function, hook.receiver, seen, 0):
            for node, attribute in _writes_in(function.node):
                last = getattr(node, "end_lineno", None) or node.lineno
                write = Write(function.module.shown, node.lineno, last, attribute, hook.name)
                found.setdefault(write.place, write)
    return sorted(found.values(), key=lambda write: write.place)


def is_flagged(write: Write, findings: list[dict[str, Any]]) -> bool:
    """Whether a finding stands on the write, or leads there from its hook."""
    for finding in findings:
        if finding["filename"] == write.path:
            start, end = finding["location"]["row"], finding["end_location"]["row"]
            if start <= write.last and write.line <= end:
                return True
        if any(f["filename"] == write.path and write.line <= f["row"] <= write.last for f in finding["trace"]):
            return True
    return False


# ---- which functions


def _reached(
    index: Index, function: FunctionInfo, receiver: ClassInfo | None, seen: set[int], depth: int
) -> Iterator[FunctionInfo]:
    """The function and those it calls by a name that the index can follow. A helper's own body is judged where it is called."""
    if id(function.node) in seen or depth > _MAX_DEPTH or function.name in _HELPERS:
        return
    seen.add(id(function.node))
    yield function
    for node in ast.walk(function.node):
        if isinstance(node, ast.Call):
            for callee in (node.func, *node.args):  # arguments: callbacks
                for target, owner in _targets(index, function, receiver, callee, is_call=callee is node.func):
                    yield from _reached(index, target, owner, seen, depth + 1)


def _targets(
    index: Index, function: FunctionInfo, receiver: ClassInfo | None, callee: ast.expr, *, is_call: bool
) -> Iterator[tuple[FunctionInfo, ClassInfo | None]]:
    if isinstance(callee, ast.Attribute) and receiver is not None and _is_own(function, callee.value):
        method = index.method(receiver, callee.attr)
        if method is not None:
            yield method, receiver
        return
    if not isinstance(callee, ast.Name | ast.Attribute):
        return
    resolved = _local_import(index, function, callee) or index.resolve_expression(function.module, callee)
    if isinstance(resolved, FunctionInfo):
        yield resolved, resolved.owner
    elif isinstance(resolved, ClassInfo) and is_call and not index.is_parameter_class(resolved):
        for name in ("__init__", "__post_init__"):
            method = index.method(resolved, name)
            if method is not None:
                yield method, resolved


def _is_own(function: FunctionInfo, node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super":
        return True
    return isinstance(node, ast.Name) and bool(function.self_name) and node.id == function.self_name


def _local_import(index: Index, function: FunctionInfo, callee: ast.expr) -> FunctionInfo | ClassInfo | None:
    """A name that the function itself imports, as hooks do to keep imports of kernels late."""
    if not isinstance(callee, ast.Name):
        return None
    for node in ast.walk(function.node):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                if (alias.asname or alias.name) == callee.id:
                    found = index.dotted(f"{node.module}.{alias.name}")
                    return (
                        found if isinstance(found, FunctionInfo | ClassInfo) and not isinstance(found, Module) else None
                    )
    return None


# ---- which writes


def _writes_in(function: ast.AST) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            if not _is_plain(node.value):
                for target in node.targets:
                    yield from ((node, text) for text in _bound(target))
        elif isinstance(node, ast.AnnAssign | ast.AugAssign):
            if not _is_plain(node.value):
                yield from ((node, text) for text in _bound(node.target))
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                yield from ((node, text) for text in _bound(target))
        elif isinstance(node, ast.Call):
            text = _by_call(node)
            if text:
                yield node, text


def _is_plain(value: ast.expr | None) -> bool:
    """Numbers, strings and flags hold no memory. None may be what is left of a tensor."""
    return value is None or (isinstance(value, ast.Constant) and value.value is not None)


def _bound(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Tuple | ast.List):
        for item in target.elts:
            yield from _bound(item)
    elif isinstance(target, ast.Starred):
        yield from _bound(target.value)
    elif isinstance(target, ast.Attribute | ast.Subscript):
        yield ast.unparse(target)


def _by_call(node: ast.Call) -> str:
    callee = node.func
    name = callee.attr if isinstance(callee, ast.Attribute) else callee.id if isinstance(callee, ast.Name) else ""
    if name in _IN_PLACE and isinstance(callee, ast.Attribute):
        return f"{ast.unparse(callee.value)}.{name}"
    if name not in _NAMED or not node.args:
        return ""
    if isinstance(callee, ast.Attribute) and name in ("register_parameter", "register_buffer"):
        return f"{ast.unparse(callee.value)}.{_name_of(node.args[0])}"
    if len(node.args) > 1:
        return f"{ast.unparse(node.args[0])}.{_name_of(node.args[1])}"
    return ""


def _name_of(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else f"{{{ast.unparse(node)}}}"
