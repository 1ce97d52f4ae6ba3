"""What an object refers to: the edges that the census follows, by the object's shape."""

from __future__ import annotations

import collections
import enum
import functools
import logging
import threading
import types
import weakref
from collections.abc import Iterator
from typing import Any, Final

import torch

__all__ = ["Edge", "Shape", "class_edges", "edges_of", "length_of", "shape_of"]

# label to append to the path, kind of the edge, who holds the reference (None: the object itself), under what key, the value
Edge = tuple[str, str, Any, Any, Any]


class Shape(enum.Enum):
    """How an object's references are read."""

    ATOM = "atom"  # never entered
    TENSOR = "tensor"
    MODULE = "module"
    DICT = "dict"
    SEQUENCE = "sequence"
    SET = "set"
    FUNCTION = "function"
    METHOD = "method"
    PARTIAL = "partial"
    CELL = "cell"
    PROXY = "proxy"  # a read-only view of a dict
    OBJECT = "object"


_ATOMS: Final = (
    type(None), bool, int, float, complex, str, bytes, bytearray, memoryview, range, slice, type, enum.Enum, torch.dtype, torch.device,
    torch.layout, torch.memory_format, torch.Size, torch.Generator, torch._C.ScriptModule, types.ModuleType, types.BuiltinFunctionType,
    types.CodeType, types.FrameType, types.TracebackType, types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType,
    types.GetSetDescriptorType, types.MemberDescriptorType, types.GenericAlias, property, staticmethod, classmethod, logging.Logger,
    threading.Thread, weakref.ref,
)  # fmt: skip
_BY_SHAPE: Final[tuple[tuple[type | tuple[type, ...], Shape], ...]] = (
    (torch.Tensor, Shape.TENSOR),
    (torch.jit.ScriptModule, Shape.ATOM),
    (torch.nn.Module, Shape.MODULE),
    (_ATOMS, Shape.ATOM),
    (dict, Shape.DICT),
    ((list, tuple, collections.deque), Shape.SEQUENCE),
    ((set, frozenset), Shape.SET),
    (types.FunctionType, Shape.FUNCTION),
    (types.MethodType, Shape.METHOD),
    (functools.partial, Shape.PARTIAL),
    (types.CellType, Shape.CELL),
    (types.MappingProxyType, Shape.PROXY),
)
_REGISTRIES: Final = frozenset({"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"})


def shape_of(kind: type) -> Shape:
    for types_, shape in _BY_SHAPE:
        if issubclass(kind, types_):
            return shape
    return Shape.OBJECT


def edges_of(shape: Shape, obj: Any) -> Iterator[Edge]:
    edges: Iterator[Edge] = _READERS[shape](obj)
    return edges


def length_of(container: Any) -> int:
    """The number of items, read past whatever a subclass overrides; 0 for what is no container."""
    kinds: tuple[Any, ...] = (dict, list, tuple, collections.deque, set, frozenset)
    return next((int(kind.__len__(container)) for kind in kinds if isinstance(container, kind)), 0)


def _instance_dict(obj: Any) -> dict[str, Any]:
    try:
        attributes = object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return {}
    return attributes if isinstance(attributes, dict) else {}


def _attributes(obj: Any, kind: str = "attribute") -> Iterator[Edge]:
    for name, value in list(_instance_dict(obj).items()):
        yield f".{name}", kind, None, name, value


def _slots(obj: Any) -> Iterator[Edge]:
    for cls in type(obj).__mro__:
        if "__slots__" not in cls.__dict__:
            continue
        for name, member in list(cls.__dict__.items()):
            if isinstance(member, types.MemberDescriptorType):
                try:
                    value = member.__get__(obj, type(obj))
                except AttributeError:  # not set
                    continue
                yield f".{name}", "slot", None, name, value


def class_edges(kind: type) -> Iterator[Edge]:
    """Tensors and containers that a class of the host (and its bases) holds as attributes."""
    for cls in kind.__mro__:
        if cls.__module__ == "builtins" or cls.__module__.partition(".")[0] == "torch":
            continue
        for name, value in list(cls.__dict__.items()):
            if isinstance(value, (torch.Tensor, dict, list)) and not name.startswith("__"):
                yield f".<class {cls.__name__}>.{name}", "class", cls, name, value


def _tensor(tensor: torch.Tensor) -> Iterator[Edge]:
    if tensor.layout is not torch.strided:
        yield from _sparse_parts(tensor)
    yield from _attributes(tensor, "tensor-attribute")
    if tensor.is_leaf and tensor.grad is not None:
        yield ".grad", "grad", None, "grad", tensor.grad


def _sparse_parts(tensor: torch.Tensor) -> Iterator[Edge]:
    readers = {
        torch.sparse_coo: ("_indices", "_values"),
        torch.sparse_csr: ("crow_indices", "col_indices", "values"),
        torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
        torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
        torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
    }
    for name in readers.get(tensor.layout, ()):
        yield f".{name}()", "attribute", None, name, getattr(tensor, name)()


def _module(module: torch.nn.Module) -> Iterator[Edge]:
    attributes = _instance_dict(module)
    for registry, kind in (("_parameters", "parameter"), ("_buffers", "buffer"), ("_modules", "module")):
        for name, value in list((attributes.get(registry) or {}).items()):
            yield f".{name}", kind, None, name, value
    for name, value in list(attributes.items()):
        if name not in _REGISTRIES and value is not None:
            yield f".{name}", "attribute", None, name, value


def _dict(mapping: dict[Any, Any]) -> Iterator[Edge]:
    for key, value in list(dict.items(mapping)):
        label = f"[{key!r}]" if isinstance(key, (str, int)) else f"[<{type(key).__name__}>]"
        yield label, "item", None, key, value
        if not isinstance(key, _ATOMS):
            yield f".key(<{type(key).__name__}>)", "item", None, key, key
    if type(mapping) is not dict:
        yield from _attributes(mapping)


def _proxy(mapping: types.MappingProxyType[Any, Any]) -> Iterator[Edge]:
    yield from _dict(dict(mapping))


def _sequence(sequence: Any) -> Iterator[Edge]:
    kind = next(base for base in (list, tuple, collections.deque) if isinstance(sequence, base))
    fields = getattr(type(sequence), "_fields", None)
    names = fields if kind is tuple and isinstance(fields, tuple) and len(fields) == len(sequence) else None
    for index, value in enumerate(kind.__iter__(sequence)):
        yield (f".{names[index]}" if names else f"[{index}]"), "item", None, index, value
    if type(sequence) is not kind:
        yield from _attributes(sequence)


def _set(members: Any) -> Iterator[Edge]:
    kind = set if isinstance(members, set) else frozenset
    for index, value in enumerate(kind.__iter__(members)):
        yield f"{{{index}}}", "item", None, index, value


def _function(function: types.FunctionType) -> Iterator[Edge]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            value = cell.cell_contents
        except ValueError:  # still empty
            continue
        yield f".<closure {name}>", "closure", cell, name, value
    for index, value in enumerate(function.__defaults__ or ()):
        yield f".<default {index}>", "default", None, index, value
    for name, value in (function.__kwdefaults__ or {}).items():
        yield f".<default {name}>", "default", None, name, value
    yield from _attributes(function)


def _method(method: types.MethodType) -> Iterator[Edge]:
    yield ".__self__", "bound", None, "__self__", method.__self__
    yield ".__func__", "bound", None, "__func__", method.__func__


def _partial(partial: functools.partial[Any]) -> Iterator[Edge]:
    yield ".func", "partial", None, "func", partial.func
    for index, value in enumerate(partial.args):
        yield f".args[{index}]", "partial", None, index, value
    for name, value in partial.keywords.items():
        yield f".keywords[{name!r}]", "partial", None, name, value


def _cell(cell: types.CellType) -> Iterator[Edge]:
    try:
        yield ".<cell>", "closure", None, "cell", cell.cell_contents
    except ValueError:
        return


def _object(obj: Any) -> Iterator[Edge]:
    yield from _attributes(obj)
    yield from _slots(obj)


_READERS: Final[dict[Shape, Any]] = {
    Shape.TENSOR: _tensor,
    Shape.MODULE: _module,
    Shape.DICT: _dict,
    Shape.SEQUENCE: _sequence,
    Shape.SET: _set,
    Shape.FUNCTION: _function,
    Shape.METHOD: _method,
    Shape.PARTIAL: _partial,
    Shape.CELL: _cell,
    Shape.PROXY: _proxy,
    Shape.OBJECT: _object,
}
