"""The assignments that constructors and ``create_weights`` make to an attribute, before any hook runs."""

from __future__ import annotations

import ast

from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.values import Obj, Value
from rebindlint.index.classes import ClassInfo, FunctionInfo, InitWrite
from rebindlint.index.modules import text_of

__all__ = [
    "all_writes",
    "constructs",
    "is_computed_number",
    "is_empty_buffer",
    "is_set_below",
    "is_submodule",
    "is_unsaved_buffer",
    "is_written",
    "last_writes",
    "runs_before_hooks",
]

_CONTAINERS = ("ModuleList", "ModuleDict", "Sequential", "Linear", "Embedding")


def constructs(function: FunctionInfo) -> bool:
    """Whether the method runs while the object is made."""
    return function.name in ("__init__", "__post_init__")


def runs_before_hooks(function: FunctionInfo) -> bool:
    """Whether a method of that name has run when the first hook does."""
    return function.name in ("__init__", "__post_init__", "create_weights", "setup")


def all_writes(m: Interpreter, cls: ClassInfo, name: str) -> list[InitWrite]:
    """The assignments to ``self.name`` in any method of the class and its bases."""
    key = ("writes", id(cls), name)
    known: list[InitWrite] | None = m.index.pure.get(key)
    if known is None:
        known = m.index.pure[key] = [write for base in m.index.mro(cls) for write in base.writes.get(name, ())]
    return known


def last_writes(m: Interpreter, cls: ClassInfo, name: str) -> list[InitWrite]:
    """The assignments that may be the last before a hook: all conditional ones, and the last unconditional."""
    key = ("last writes", id(cls), name)
    known: list[InitWrite] | None = m.index.pure.get(key)
    if known is not None:
        return known
    writes = [w for w in all_writes(m, cls, name) if runs_before_hooks(w.function)]
    options: list[InitWrite] = []
    for write in sorted(writes, key=lambda w: not constructs(w.function)):
        if not write.conditional and constructs(write.function):
            options = []
        options.append(write)
    seen: dict[str, InitWrite] = {}
    for write in options:
        seen.setdefault(text_of(write.value) if write.value is not None else "?", write)
    known = m.index.pure[key] = list(seen.values())[:4]
    return known


def is_written(m: Interpreter, cls: ClassInfo, name: str) -> bool:
    """Whether a constructor (or ``create_weights``) of the class assigns ``self.name``."""
    return any(runs_before_hooks(write.function) for write in all_writes(m, cls, name))


def is_set_below(m: Interpreter, cls: ClassInfo, name: str) -> bool:
    """Whether a class below, of which the object may be one as well, sets the attribute itself."""
    key = ("set below", id(cls), name)
    known: bool | None = m.index.pure.get(key)
    if known is None:
        known = m.index.pure[key] = any(
            name in below.attributes or any(runs_before_hooks(w.function) for w in below.writes.get(name, ()))
            for below in m.index.subclasses(cls)
            if below is not cls
        )
    return known


def is_computed_number(m: Interpreter, obj: Obj, name: str) -> bool:
    """Whether the constructor gives the attribute a value, not just something that stands there until weights are loaded."""
    writes = all_writes(m, obj.cls, name) if obj.cls is not None else []
    return any(constructs(write.function) and not isinstance(write.value, ast.Constant) for write in writes)


def is_unsaved_buffer(m: Interpreter, obj: Obj, name: str) -> bool:
    """A buffer that no checkpoint has: the constructor computes it and registers it as not persistent."""
    return obj.cls is not None and any(not write.persistent for write in all_writes(m, obj.cls, name))


def is_empty_buffer(m: Interpreter, obj: Obj, name: str) -> bool:
    """Whether the constructor registers None as a buffer that is not persistent: a tensor that is assigned to it is registered."""
    writes = all_writes(m, obj.cls, name) if obj.cls is not None else []
    return any(not w.persistent and isinstance(w.value, ast.Constant) and w.value.value is None for w in writes)


def is_submodule(m: Interpreter, obj: Obj, name: str, now: Value | None) -> bool:
    """Whether the attribute is a module that the constructor made, so that a checkpoint has weights for it."""
    if obj.cls is None:
        return False
    writes = [w for w in all_writes(m, obj.cls, name) if constructs(w.function) and isinstance(w.value, ast.Call)]
    made = isinstance(now, Obj) and now.is_module and not now.born
    for write in writes:
        assert isinstance(write.value, ast.Call)
        found = m.index.resolve_expression(write.function.module, write.value.func)
        made = made or (isinstance(found, str) and str(found).rpartition(".")[2] in _CONTAINERS)
    return bool(writes) and made
