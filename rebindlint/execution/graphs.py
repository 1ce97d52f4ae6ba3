"""CUDA graphs that the executed code captures itself: what is made together with a graph is what that graph holds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.values import DictValue, ListValue, Obj, Unknown, Value
from rebindlint.index.classes import ClassInfo

__all__ = ["captured_anew"]

_GRAPH = re.compile(r"(?:\w+\.)+(?:(?:CUDA|NPU|XPU)Graph|make_graphed_callables)(?:\(.*\)|@.*)", re.S)
_CAPTURES = re.compile(r"\b(?:(?:CUDA|NPU|XPU)Graph|make_graphed_callables|(?:cuda|npu|xpu)\.graph)\(")
_DEPTH = 3  # containers and objects around a graph


def captured_anew(m: Interpreter, old: object, now: Value | None) -> bool:
    """Whether what stands in the place of ``old`` comes with graphs of its own, so that none which is replayed holds what is below ``old``.

    It holds a graph that the second run made, or it is another object of a class that captures graphs, then or when they are needed.
    """
    if isinstance(old, Obj) and isinstance(now, Obj) and old.cls is not None and now.cls is old.cls:
        if now.born and _captures(m, old.cls):
            return True
    elif not isinstance(now, (ListValue, DictValue)):
        return False
    graphs = {id(graph) for graph in _graphs(old)}
    return bool(graphs) and any(id(graph) not in graphs for graph in _graphs(now))


def _captures(m: Interpreter, cls: ClassInfo) -> bool:
    key = ("captures", id(cls))
    known: bool | None = m.index.pure.get(key)
    if known is None:
        known = m.index.pure[key] = any(
            _CAPTURES.search("\n".join(base.module.lines[base.node.lineno - 1 : base.node.end_lineno])) is not None
            for base in m.index.mro(cls)
        )
    return known


def _graphs(value: object, depth: int = 0) -> Iterator[Unknown]:
    if isinstance(value, Unknown):
        if _GRAPH.fullmatch(value.label):
            yield value
    elif depth < _DEPTH and isinstance(value, (Obj, DictValue, ListValue)):
        inner = value.attributes if isinstance(value, Obj) else value.items
        for item in list(inner.values() if isinstance(inner, dict) else inner):
            yield from _graphs(item, depth + 1)
