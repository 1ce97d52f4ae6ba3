"""Attributes and methods of tensors."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from rebindlint.execution import in_place, ranks
from rebindlint.execution import torch_table as table
from rebindlint.execution.dtypes import dtype_label, is_concrete, same_dtype
from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.sizes import has_no_elements, resized
from rebindlint.execution.values import (
    BoundMethod,
    Const,
    ListValue,
    Tensor,
    Unknown,
    Value,
    is_stable,
    label_of,
)

__all__ = [
    "AMBIGUOUS",
    "attribute",
    "element",
    "is_tensor_name",
    "method",
    "view",
]

# attributes that decide between tensor and something else only when the thing is known to be a tensor
AMBIGUOUS = table.AMBIGUOUS - {"dtype", "device", "shape", "T", "requires_grad"}
is_tensor_name = table.is_tensor_name


def attribute(m: Interpreter, tensor: Tensor, name: str, node: ast.AST) -> Value:
    if name in tensor.attributes:
        return tensor.attributes[name]
    if name == "data":
        return tensor.alias()
    if name == "dtype":
        return Unknown(tensor.dtype)
    if name == "shape":
        return Unknown(f"shape{tensor.shape}")
    if name == "device":
        return Unknown("device")
    if name == "is_meta":
        return Const(False)
    if name in ("T", "mT", "H", "mH"):
        return view(m, tensor, name, (), strided=True)
    if name in ("ndim", "nbytes", "itemsize"):
        return Unknown(
            f"shape{tensor.shape}.dim" if name == "ndim" else f"dtype {tensor.dtype} shape{tensor.shape}.{name}"
        )
    if name in table.HOST_ATTRIBUTES:
        return Unknown(f"tensor.{name}")
    if name == "__dict__":
        return ListValue([], closed=True)
    if table.is_tensor_name(name) or name.endswith("_"):
        return BoundMethod(tensor, name)
    return (
        BoundMethod(tensor, name)
        if tensor.certain and not tensor.home
        else Unknown(f"{tensor.home or 'tensor'}.{name}", None)
    )


# ---- views and copies


def view(
    m: Interpreter,
    tensor: Tensor,
    operation: str,
    args: Sequence[Value],
    *,
    strided: bool | None = None,
    dtype: str = "",
) -> Tensor:
    """A tensor over the same memory. That it can be viewed shows that it is one."""
    labels = tuple(m.term(a) for a in args)
    undone = m.undone(tensor.path, operation, labels)
    if undone is not None:
        return Tensor(
            tensor.storage, tensor.dtype, m.terms.of("shape-of", tensor.shape, operation, labels), path=undone
        )
    path = m.path(tensor.path, operation, labels)
    shape = m.terms.of("shape-of", tensor.shape, operation, labels)
    if operation in ranks.CHANGING:
        ranks.of_view(m, tensor.shape, shape, operation, args)
    return Tensor(
        tensor.storage, dtype or tensor.dtype, shape, path=path, strided=tensor.strided if strided is None else strided
    )


def element(m: Interpreter, tensor: Tensor, index: Value | None) -> Tensor:
    """``tensor[index]``: a view, unless the index is a tensor, or one of several is."""
    if isinstance(index, Tensor) or (isinstance(index, ListValue) and any(isinstance(i, Tensor) for i in index.items)):
        return m.fresh("gather", [tensor, index], dtype=tensor.dtype)
    return view(
        m, tensor, "[]", [index] if index is not None else [], strided=not isinstance(index, Const) or tensor.strided
    )


def _copy(m: Interpreter, tensor: Tensor, dtype: str = "", *, on_host: bool = False) -> Tensor:
    """Newly allocated memory with the same values."""
    content = m.term(tensor)
    storage = m.storage(
        content if isinstance(content, int) else 0,
        tensor.storage.epochs,
        sources=tensor.storage.sources | {tensor.storage.number},
    )
    storage.on_host = on_host or tensor.storage.on_host
    storage.empty = tensor.storage.empty
    return Tensor(storage, dtype or tensor.dtype, tensor.shape, certain=tensor.certain)


def cast(m: Interpreter, tensor: Tensor, dtype: str, node: ast.AST) -> Tensor:
    """``tensor.to(dtype)``: itself when the dtype is the same already."""
    if not dtype:
        return tensor
    before = len(m.oracle.consulted)
    same = same_dtype(m, tensor.dtype, dtype, node)
    if m.run == 1:
        m.worth_trying(node, m.oracle.consulted[before:], done=not same)  # new memory, or what was given
    if same:
        return tensor
    made = _copy(m, tensor, dtype)
    made.storage.cast = tensor.storage.born == 0 and not (is_concrete(tensor.dtype) and is_concrete(dtype))
    return made


# ---- methods


def method(
    m: Interpreter, tensor: Tensor, name: str, args: list[Value], keywords: dict[str, Value], node: ast.AST
) -> Value:
    """``tensor.name(*args)``."""
    every = [*args, *keywords.values()]
    tensor.certain = tensor.certain or name not in table.AMBIGUOUS
    if name == "to":
        return _to(m, tensor, every, node)
    if name in table.CAST:
        return cast(m, tensor, table.CAST[name], node)
    if name in ("type", "type_as"):
        return (
            cast(m, tensor, next((d for a in every if (d := dtype_label(a))), ""), node) if every else Unknown("type")
        )
    if name == "view" and len(args) == 1 and dtype_label(args[0]):
        dtype = dtype_label(args[0])
        m.oracle.reinterpreted.add((tensor.dtype, dtype))
        return view(m, tensor, "view", args, dtype=dtype)
    if name in ("reshape", "flatten") and tensor.strided:
        made = m.fresh(name, [tensor, *every], dtype=tensor.dtype)
        ranks.of_view(m, tensor.shape, made.shape, name, every)
        return made
    if name in ("detach", "requires_grad_", "alias", "detach_"):
        return tensor if name == "requires_grad_" else tensor.alias()
    if name in table.VIEW:
        return view(m, tensor, name, every)
    if name in table.RESTRIDE:
        return view(m, tensor, name, every, strided=True)
    if name in table.SEVERAL_VIEWS:
        return ListValue(
            [view(m, tensor, name, [*every, Const(i)], strided=True) for i in range(_count(args))], closed=False
        )
    if name == "cuda" and tensor.storage.on_host:
        return _to(m, tensor, [Unknown("device")], node)
    if name in table.KEEP:
        return tensor
    if name in table.KEEP_OR_COPY:
        return _copy(m, tensor) if tensor.strided else tensor
    if name in ("clone", "cpu", "numpy", "pin_memory", "__deepcopy__"):
        return _copy(m, tensor, on_host=name in ("cpu", "numpy", "pin_memory"))
    if name in table.HOST_METHODS:
        return _host(m, tensor, name, every)
    if name in table.SCALAR:
        return m.number(name, tensor)
    if name == "set_":
        return in_place.set_memory(m, tensor, args)
    if name.endswith("_") and not name.endswith("__") and name not in table.NO_WRITE:
        return in_place.apply(m, tensor, name, args, keywords)
    if name in table.SEVERAL and (args or "dim" in keywords):
        return ListValue([m.fresh(f"{name}{i}", [tensor, *every], dtype=tensor.dtype) for i in range(2)])
    dtype = next((d for a in every if (d := dtype_label(a))), tensor.dtype)
    made = m.fresh(name, [tensor, *every], dtype=dtype, zeroed=name in table.ZEROED)
    if name in table.RESIZE:
        made.shape = resized(m, made.storage.content)
    elif name in table.REORDER:
        made.shape = tensor.shape
    elif not every:
        ranks.of_element(m, tensor, made, name)
    if name.startswith("new_"):
        made.storage.epochs, made.storage.sources = m.epochs(every), m.sources(every)
    made.storage.empty = name.startswith("new_") and has_no_elements(args, keywords)
    return made


def _count(args: list[Value]) -> int:
    """How many pieces a split gives, where the sizes are written out."""
    if args and isinstance(args[0], ListValue) and args[0].closed:
        return max(len(args[0].items), 1)
    return (
        args[0].value
        if args and isinstance(args[0], Const) and isinstance(args[0].value, int) and 0 < args[0].value <= 8
        else 4
    )


def _to(m: Interpreter, tensor: Tensor, every: list[Value], node: ast.AST) -> Tensor:
    for argument in every:
        if isinstance(argument, Tensor):
            return cast(m, tensor, argument.dtype, node)
        dtype = dtype_label(argument)
        if dtype:
            return cast(m, tensor, dtype, node)
    if every and label_of(every[0]) in ("'cpu'", "torch.device('cpu')"):
        return _copy(m, tensor, on_host=True)
    if tensor.storage.on_host and every:
        moved = _copy(m, tensor)
        moved.storage.on_host = False
        return moved
    return tensor


def _host(m: Interpreter, tensor: Tensor, name: str, every: list[Value]) -> Value:
    inner = ",".join(label_of(a) for a in every)
    sizes = m.sizes.get(tensor.shape)
    if name == "size" and sizes and every and (known := _dimension(sizes, every[0])) is not None:
        return known
    if name in ("numel", "nelement") and sizes is not None and len(sizes) == 1:
        return sizes[0]
    if name == "size":
        return Unknown(f"shape{tensor.shape}[{inner}]" if every else f"shape{tensor.shape}")
    if name == "stride":
        return Unknown(f"stride{tensor.shape}{'s' if tensor.strided else ''}[{inner}]")
    if name == "data_ptr":
        return Unknown(f"ptr{tensor.storage.number}")
    if name in ("dim", "ndimension"):
        return Unknown(f"shape{tensor.shape}.dim")
    if name in ("numel", "nelement"):
        return Unknown(f"shape{tensor.shape}.numel")
    return Unknown(f"{tensor.home or 'tensor'}.{name}({inner})" if is_stable(inner) else f"tensor.{name}")


def _dimension(sizes: tuple[Value, ...], index: Value) -> Value | None:
    number = index.value if isinstance(index, Const) else None
    return sizes[number] if isinstance(number, int) and -len(sizes) <= number < len(sizes) else None
