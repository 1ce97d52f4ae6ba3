"""Workspaces that run-time code makes when it first needs them, between the first run of a hook and the capture.

What the hook leaves at None is filled by then, so a second run that sets it to None releases memory that a graph holds.
"""

from __future__ import annotations

import ast

from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.torch_table import ALLOCATE
from rebindlint.execution.values import Const, Obj, Value
from rebindlint.index.classes import ClassInfo, InitWrite
from rebindlint.index.hooks import belongs_to_loading

__all__ = ["fill_workspaces"]


def fill_workspaces(m: Interpreter, roots: list[tuple[str, Value]]) -> None:
    """Put a tensor where the first run left None and run-time code of the object's class allocates one."""
    for _, root in roots:
        if not isinstance(root, Obj) or root.cls is None:
            continue
        for name, value in root.attributes.items():
            is_none = isinstance(value, Const) and value.value is None
            if is_none and _is_made_at_run_time(m, root.cls, name):
                tensor = m.fresh(f"workspace {root.label}.{name}")
                tensor.home = f"{root.label}.{name}"
                root.attributes[name] = tensor


def _is_made_at_run_time(m: Interpreter, cls: ClassInfo, name: str) -> bool:
    key = ("workspace", id(cls), name)
    known: bool | None = m.index.pure.get(key)
    if known is None:
        writes = [w for base in m.index.mro(cls) for w in base.writes.get(name, ())]
        known = m.index.pure[key] = any(
            not belongs_to_loading(m.index, write.function.name) and _allocates(m, write) for write in writes
        )
    return known


def _allocates(m: Interpreter, write: InitWrite) -> bool:
    """Whether the value, or one of those that the variable it comes from is given, is what an allocator of torch returns."""
    values = [write.value]
    if isinstance(write.value, ast.Name):
        name = write.value.id
        assigned = write.function.assignments
        values = [a.value for a in assigned if any(isinstance(t, ast.Name) and t.id == name for t in a.targets)]
    return any(isinstance(value, ast.Call) and _is_allocator(m, write, value.func) for value in values)


def _is_allocator(m: Interpreter, write: InitWrite, function: ast.expr) -> bool:
    found = m.index.resolve_expression(write.function.module, function)
    home, _, name = str(found).rpartition(".") if isinstance(found, str) else ("", "", "")
    return home == "torch" and name in ALLOCATE
