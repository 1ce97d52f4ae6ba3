"""Objects whose class a constructor exchanges: after ``self.part.__class__ = Other`` they have the methods of ``Other``."""

from __future__ import annotations

import ast

from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.values import Obj
from rebindlint.index.classes import ClassInfo

__all__ = ["exchange_class"]

Exchange = tuple[tuple[str, ...], ClassInfo]  # the attributes that lead to an object, and the class that it gets


def exchange_class(m: Interpreter, obj: Obj, name: str, value: Obj) -> None:
    """Give what ``obj`` has under ``name`` the class that a constructor of ``obj``, or of what made that, puts it in."""
    found = [exchange for cls in m.index.mro(obj.cls) for exchange in _exchanges(m, cls)] if obj.cls is not None else []
    for path, cls in [*found, *m.exchanges.get(id(obj), ())]:
        if path[0] == name and len(path) > 1:
            m.keep.append(value)  # it is known by its identity
            m.exchanges.setdefault(id(value), []).append((path[1:], cls))
        elif path[0] == name:
            value.cls, value.exact = cls, True


def _exchanges(m: Interpreter, cls: ClassInfo) -> list[Exchange]:
    key = ("exchanges", id(cls))
    known: list[Exchange] | None = m.index.pure.get(key)
    if known is None:
        known = m.index.pure[key] = []
        constructor = cls.methods.get("__init__") if ".__class__ = " in cls.module.text else None
        for node in constructor.assignments if constructor is not None else ():
            target = node.targets[0]
            if constructor is not None and isinstance(target, ast.Attribute) and target.attr == "__class__":
                path = _path(target.value, constructor.self_name)
                other = m.index.resolve_expression(cls.module, node.value)
                if path and isinstance(other, ClassInfo):
                    known.append((path, other))
    return known


def _path(node: ast.expr, self_name: str) -> tuple[str, ...]:
    """``("a", "b")`` of ``self.a.b``; empty for anything else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return tuple(names) if isinstance(node, ast.Name) and node.id == self_name else ()
