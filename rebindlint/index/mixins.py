"""Hooks of classes that are not whole by themselves: what they call is in the classes that are built with them.

``super()`` in a mixin is whatever class stands next to it, and a method that it calls on itself may be another base's. Its
hook is executed for the mixin alone and for some of the classes that inherit it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rebindlint.index.classes import ClassInfo, FunctionInfo

if TYPE_CHECKING:
    from rebindlint.index.tree import Index

__all__ = ["completing_classes"]

_MOST = 2  # classes that stand for all which inherit a hook
_MAX_METHODS = 24  # of the mixin, that its hook may call

Missing = tuple[ClassInfo | None, str]  # for ``super()`` the class that calls it, and the method


def completing_classes(index: Index, cls: ClassInfo, hook: FunctionInfo) -> list[ClassInfo]:
    """Classes that inherit the hook and have methods which it calls and ``cls`` lacks: one for each choice of such methods, the first few."""
    missing = _missing(index, cls, hook)
    if not missing:
        return []
    found: dict[tuple[int, ...], ClassInfo] = {}
    for below in sorted(index.subclasses(cls), key=lambda c: (c.qualified, c.node.lineno)):
        if below is cls or index.method(below, hook.name) is not hook:
            continue
        methods = tuple(id(_found(index, below, after, name)) for after, name in missing)
        if any(_found(index, below, after, name) is not None for after, name in missing):
            found.setdefault(methods, below)
    return list(found.values())[:_MOST]


def _found(index: Index, cls: ClassInfo, after: ClassInfo | None, name: str) -> FunctionInfo | None:
    if after is None:
        return index.method(cls, name)
    order = index.mro(cls)
    start = order.index(after) + 1 if after in order else 0
    return next((base.methods[name] for base in order[start:] if name in base.methods), None)


def _missing(index: Index, cls: ClassInfo, hook: FunctionInfo) -> list[Missing]:
    """What the hook, and the methods of the class that it calls, call and the class does not have."""
    found: list[Missing] = []
    seen: list[FunctionInfo] = []
    queue = [hook]
    while queue and len(seen) < _MAX_METHODS:
        function = queue.pop(0)
        seen.append(function)
        for after, name in _called(function):
            method = _found(index, cls, after, name)
            if method is not None:
                if method not in seen and method not in queue:
                    queue.append(method)
            elif (after, name) not in found and (after is not None or not _has(index, cls, name)):
                found.append((after, name))
    return found


def _called(function: FunctionInfo) -> Iterator[Missing]:
    """Methods that a method calls on its object or on ``super()``."""
    for on_super, name in function.own_calls:
        yield function.owner if on_super else None, name


def _has(index: Index, cls: ClassInfo, name: str) -> bool:
    """Whether something else than a method stands under the name."""
    return any(name in base.attributes or name in base.annotations or name in base.writes for base in index.mro(cls))
