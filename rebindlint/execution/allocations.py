"""Tensors that constructors allocate."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from rebindlint.execution.interpreter import Interpreter, Site
from rebindlint.execution.torch_table import SIZED
from rebindlint.execution.values import Tensor
from rebindlint.index.classes import InitWrite
from rebindlint.index.modules import Module, descend, text_of
from rebindlint.model import Binding

__all__ = ["ALLOCATORS", "all_allocate", "allocated", "allocates"]

ALLOCATORS = frozenset(
    {
        "empty",
        "zeros",
        "ones",
        "full",
        "tensor",
        "arange",
        "empty_like",
        "zeros_like",
        "rand",
        "randn",
    }
)


def allocated(m: Interpreter, node: ast.Call, write: InitWrite, label: str, allocator: str) -> Tensor:
    """What ``torch.<allocator>(…)`` in a constructor gives: memory that was there before the hook."""
    tensor = m.fresh(f"init {label}", dtype=_dtype_keyword(node), zeroed=allocator.startswith("zeros"))
    tensor.storage.born = 0
    tensor.storage.empty = allocator in SIZED and bool(node.args) and _is_zero(node.args[0])
    tensor.storage.scratch = allocator.startswith("empty")
    tensor.storage.on_host = _on_host(node)
    tensor.home = label
    m.origins[tensor.storage.number] = _origin(m, write, node, tensor)
    return tensor


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 0


def _on_host(node: ast.Call) -> bool:
    given = {k.arg: k.value for k in node.keywords}
    device, pinned = given.get("device"), given.get("pin_memory")
    return (isinstance(device, ast.Constant) and device.value == "cpu") or (
        isinstance(pinned, ast.Constant) and pinned.value is True
    )


def _dtype_keyword(node: ast.Call) -> str:
    for keyword in node.keywords:
        if keyword.arg == "dtype" and isinstance(keyword.value, ast.Attribute):
            return text_of(keyword.value)
    return ""


def _origin(m: Interpreter, write: InitWrite, node: ast.expr, tensor: Tensor) -> Site:
    """The assignment in a constructor that allocates, as the place to blame."""
    info = write.function
    key = ("statement of", id(node))
    statement: ast.AST | None = m.index.pure.get(key)
    if statement is None:
        assigned = [n for n in descend(info.node) if isinstance(n, (ast.Assign, ast.AnnAssign)) and n.value is not None]
        inside = (ast.Dict, ast.List, ast.Tuple)
        holds = (n for n in assigned if n.value is node or (isinstance(n.value, inside) and node in descend(n.value)))
        statement = m.index.pure[key] = next(holds, node)
    chain = ((info.module.shown, getattr(statement, "lineno", 0), info.qualified),)
    return Site(Binding.ATTRIBUTE, info.module, statement, info.qualified, chain, 0, tensor, None)


def allocates(m: Interpreter, write: InitWrite) -> bool:
    """Whether the assignment gives a tensor that torch allocates, or a container of nothing else."""
    value, module = write.value, write.function.module
    if isinstance(value, ast.Dict):
        return all_allocate(m, value.values, module)
    return value is not None and all_allocate(
        m, value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value], module
    )


def all_allocate(m: Interpreter, nodes: Iterable[ast.expr], module: Module) -> bool:
    """Whether there are expressions, and each is a call of torch."""
    found = [m.index.resolve_expression(module, n.func) if isinstance(n, ast.Call) else None for n in nodes]
    return bool(found) and all(isinstance(f, str) and str(f).startswith("torch.") for f in found)
