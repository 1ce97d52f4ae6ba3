"""Tensors that change in place: what their memory holds, and which memory they show."""

from __future__ import annotations

from rebindlint.execution import promotion
from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.values import Tensor, Value
from rebindlint.model import Binding

__all__ = ["apply", "copy_into", "move", "set_memory"]


def apply(m: Interpreter, tensor: Tensor, name: str, args: list[Value], keywords: dict[str, Value]) -> Tensor:
    """``tensor.name(*args)`` of a method whose name ends in an underscore."""
    if name == "copy_" and args:
        source = promotion.as_tensor(m, args[0])
        if source is not None:
            copy_into(m, tensor, source)
        return tensor
    values = [*args, *keywords.values()]
    if name in ("zero_", "fill_", "normal_", "uniform_", "random_") and not m.epochs(values):
        m.write(tensor, m.terms.of(name, *[m.term(v) for v in values]), 0)
        return tensor
    if name == "fill_":
        m.write(tensor, m.terms.of(name, *[m.term(v) for v in values]), m.epochs(values), m.sources(values))
        return tensor
    content = m.terms.of(name, m.term(tensor), *[m.term(v) for v in values])
    epochs = tensor.storage.epochs | m.epochs(values)
    if name.startswith(("scatter", "index", "masked", "put")):
        m.write(tensor, content, m.epochs(values), m.sources(values), whole=False)
    else:
        m.transform(tensor, content, epochs, m.sources(values))
        if tensor.storage.born == 0:
            m.copied(tensor, tensor)
    return tensor


def copy_into(m: Interpreter, target: Tensor, source: Tensor) -> None:
    """``target.copy_(source)``; a copy from another view of the same memory reads what it overwrites."""
    if source.storage is target.storage:
        if m.reorders(source.path, target.path):
            m.copied(target, source, overlapping=True)
        return
    sources = source.storage.sources | {source.storage.number}
    if target.storage.number in source.storage.sources and m.term(source) != m.term(target):
        m.transform(target, m.term(source), source.storage.epochs, sources)
    else:
        m.write(target, m.term(source), source.storage.epochs, sources)
    m.copied(target, source)


def set_memory(m: Interpreter, tensor: Tensor, args: list[Value]) -> Tensor:
    """``tensor.set_(source)``."""
    source = promotion.as_tensor(m, args[0]) if args else None
    if source is not None:
        move(m, tensor, source)
    return tensor


def move(m: Interpreter, target: Tensor, source: Tensor) -> None:
    """``target`` shows the memory of ``source`` from now on."""
    old, before = target.alias(), m.moved.get(id(target))
    if before is not None:
        m.moved_earlier.setdefault(id(target), []).append(before)
    target.storage, target.path, target.strided = source.storage, source.path, source.strided
    target.dtype, target.shape, target.certain = source.dtype, source.shape, source.certain
    m.moved[id(target)] = m.site(Binding.DATA, source, old)
    m.keep.append(target)
