"""Workspaces that run-time code makes when it first needs them, between the first run of a hook and the capture.

What the hook leaves at None is filled by then, so a second run that sets it to None releases memory that a graph holds.
"""

from __future__ import annotations

import ast

from rebindlint.execution.interpreter import Interpreter, Site
from rebindlint.execution.torch_table import ALLOCATE
from rebindlint.execution.values import Const, Obj, Value
from rebindlint.index.classes import ClassInfo, InitWrite
from rebindlint.index.hooks import belongs_to_loading
from rebindlint.model import Binding

__all__ = ["fill_workspaces"]


def fill_workspaces(m: Interpreter, roots: list[tuple[str, Value]]) -> None:
    """Put a tensor where the first run left None and run-time code of the object's class allocates one."""
    for _, root in roots:
        if not isinstance(root, Obj) or root.cls is None:
            continue
        for name, value in root.attributes.items():
            is_none = isinstance(value, Const) and value.value is None
            write = _made_at_run_time(m, root.cls, name) if is_none else None
            if write is not None and write.value is not None:
                tensor = m.fresh(f"workspace {root.label}.{name}")
                tensor.home = f"{root.label}.{name}"
                root.attributes[name] = tensor
                function = write.function
                m.filled[tensor.storage.number] = Site(
                    Binding.ATTRIBUTE, function.module, write.value, function.qualified, (), m.run, tensor, value
                )


def _made_at_run_time(m: Interpreter, cls: ClassInfo, name: str) -> InitWrite | None:
    """The statement in run-time code that gives the attribute what it allocates."""
    key = ("workspace", id(cls), name)
    if key not in m.index.pure:
        writes = [w for base in m.index.mro(cls) for w in base.writes.get(name, ())]
        found = (w for w in writes if not belongs_to_loading(m.index, w.function.name) and _allocates(m, w))
        m.index.pure[key] = next(found, None)
    known: InitWrite | None = m.index.pure[key]
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
