"""The census: every tensor that can be reached from given roots, with the path that leads there.

The walk follows registered parameters, buffers and sub-modules first (so that a tensor's first path is the name users
know), then plain attributes, containers, ``__slots__``, closures, function defaults, partials, bound methods,
attributes of tensors, ``.grad`` and attributes of classes. An object is entered once, under the first path found; a
tensor is recorded under every path, because paths to one storage are the aliases that a reload may break. It is a
loop over a queue, so depth and cycles do not matter, and it does not ask the garbage collector, which sees nothing
after ``gc.freeze()``.

No code of the host runs: containers are read through the built-in types' own iterators, attributes from ``__dict__``
and slot descriptors. Not followed: Python modules, weak references, threads, loggers, generators, TorchScript
modules, and instances of what `Limits` excludes.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from rebindlint.runtime.edges import Edge, Shape, class_edges, edges_of, length_of, shape_of
from rebindlint.runtime.storages import is_wrapper, storage_of

__all__ = ["Census", "Limits", "TensorRecord", "take_census"]

_EXCLUDED_MODULES: Final = (
    "torch._dynamo", "torch._C", "torch._inductor", "torch._functorch", "torch.fx", "torch.distributed", "torch.cuda", "torch.jit",
    "torch.autograd", "torch.utils._python_dispatch",
    "transformers", "pydantic", "zmq", "asyncio", "concurrent", "logging", "threading", "multiprocessing", "importlib", "typing",
    "numpy", "tqdm", "ctypes", "_ctypes", "re", "sympy", "weakref", "abc", "_thread", "_io", "io",
    "_pytest", "pluggy", "unittest", "rebindlint.runtime",
)  # fmt: skip
_EXCLUDED_TYPES: Final = (
    "VllmConfig", "ModelConfig", "CompilationConfig", "PretrainedConfig", "LoadConfig", "ParallelConfig", "SchedulerConfig",
    "GroupCoordinator", "ForwardContext", "KVCacheBlock",
)  # fmt: skip
_EXCLUDABLE: Final = frozenset({Shape.OBJECT, Shape.DICT, Shape.SEQUENCE, Shape.SET})


@dataclass(frozen=True, slots=True)
class Limits:
    """Where the walk stops: modules (with everything below them) and class names whose instances are not entered, and
    the length beyond which a container is left out and reported.
    """

    excluded_modules: tuple[str, ...] = _EXCLUDED_MODULES
    excluded_types: tuple[str, ...] = _EXCLUDED_TYPES
    max_items: int = 200_000

    def excludes(self, kind: type) -> bool:
        module = kind.__module__ if isinstance(kind.__module__, str) else ""
        return kind.__name__ in self.excluded_types or any(
            module == name or module.startswith(name + ".") for name in self.excluded_modules
        )


@dataclass(slots=True)
class TensorRecord:
    """One path to one tensor. Holds tensor and owner strongly: drop the census before counting owners."""

    path: str
    kind: str  # parameter, buffer, attribute, item, slot, closure, default, partial, bound, tensor-attribute, grad, class, root
    owner: Any  # the object that holds the reference
    key: Any  # the attribute's name, the item's index or key
    tensor: torch.Tensor
    module_class: str  # class of the nearest enclosing nn.Module, "" when there is none
    storage: torch.UntypedStorage | None
    number: int  # the storage's number, 0 when the tensor has none of its own
    offset: int  # elements
    stride: tuple[int, ...]


@dataclass(slots=True)
class Census:
    records: list[TensorRecord] = field(default_factory=list)
    visited: int = 0  # objects entered
    cut: list[tuple[str, int]] = field(default_factory=list)  # path and length of containers left out
    owners: dict[type, None] = field(default_factory=dict)  # classes on the way to a tensor, in order of discovery
    parents: dict[int, tuple[Any, Any]] = field(
        default_factory=dict
    )  # id of an entered object -> who holds it, under what key
    keep: list[Any] = field(default_factory=list)  # entered objects: while they live their ids stay unique

    def storages(self) -> int:
        return len({record.number for record in self.records if record.number})


_Item = tuple[Shape, Any, str, str, Any, Any, str]  # shape, object, path, kind, owner, key, module class


def take_census(roots: Mapping[str, object], limits: Limits | None = None) -> Census:
    """Walk from each root in turn; earlier roots give the names. Never runs the host's code and never raises for what
    it finds.
    """
    census = Census()
    walk = _Walk(census, limits or Limits())
    collecting = gc.isenabled()
    gc.disable()  # the walk allocates much and drops nothing: each collection would only scan what it has built so far
    try:
        with torch._C.DisableTorchFunction():
            for name, root in roots.items():
                walk.run(name, root)
    finally:
        if collecting:
            gc.enable()
    census.owners = walk.owner_classes()
    return census


class _Walk:
    def __init__(self, census: Census, limits: Limits) -> None:
        self.census = census
        self.limits = limits
        self.seen: set[int] = set()
        self.shapes: dict[type, Shape] = {}
        self.registered: deque[_Item] = deque()
        self.others: deque[_Item] = deque()
        self.classes_read: set[type] = set()

    def shape(self, kind: type) -> Shape:
        shape = self.shapes.get(kind)
        if shape is None:
            shape = shape_of(kind)
            if shape in _EXCLUDABLE and self.limits.excludes(kind):
                shape = Shape.ATOM
            self.shapes[kind] = shape
        return shape

    def run(self, name: str, root: object) -> None:
        self.others.append((self.shape(type(root)), root, name, "root", None, name, ""))
        registered, others = self.registered, self.others
        while registered or others:
            item = registered.popleft() if registered else others.popleft()
            if item[0] is Shape.TENSOR:
                self.tensor(item)
            elif item[0] is not Shape.ATOM:
                self.enter(item)

    def tensor(self, item: _Item) -> None:
        _, tensor, path, kind, owner, key, module_class = item
        new = id(tensor) not in self.seen
        if new:
            self.seen.add(id(tensor))
            self.census.keep.append(tensor)
            self.census.parents[id(tensor)] = (owner, key)
            self.push(edges_of(Shape.TENSOR, tensor), tensor, path, module_class)
        storage = storage_of(tensor)
        if storage is not None:
            record = TensorRecord(
                path, kind, owner, key, tensor, module_class, storage, storage._cdata, tensor.storage_offset(), tensor.stride()
            )  # fmt: skip
            self.census.records.append(record)
        elif not is_wrapper(type(tensor)):
            self.census.records.append(TensorRecord(path, kind, owner, key, tensor, module_class, None, 0, 0, ()))

    def enter(self, item: _Item) -> None:
        shape, obj, path, _, owner, key, module_class = item
        if id(obj) in self.seen:
            return
        self.seen.add(id(obj))
        self.census.keep.append(obj)
        self.census.visited += 1
        self.census.parents[id(obj)] = (owner, key)
        if shape is Shape.MODULE:
            module_class = type(obj).__qualname__
        elif length_of(obj) > self.limits.max_items:
            self.census.cut.append((path, length_of(obj)))
            return
        self.push(edges_of(shape, obj), obj, path, module_class)
        if shape in (Shape.MODULE, Shape.OBJECT) and type(obj) not in self.classes_read:
            self.classes_read.add(type(obj))
            self.push(class_edges(type(obj)), obj, path, module_class)

    def push(self, edges: Iterator[Edge], holder: Any, path: str, module_class: str) -> None:
        shapes = self.shapes
        for label, kind, owner, key, value in edges:
            value_type = type(value)
            shape = shapes.get(value_type) or self.shape(value_type)
            if shape is Shape.ATOM:
                continue
            queue = self.registered if kind in ("parameter", "buffer", "module") else self.others
            queue.append((shape, value, path + label, kind, holder if owner is None else owner, key, module_class))

    def owner_classes(self) -> dict[type, None]:
        """Classes of the objects that hold a tensor or lie on the way from a root to one."""
        classes: dict[type, None] = {}
        done: set[int] = set()
        for record in self.census.records:
            owner = record.owner
            while owner is not None and id(owner) not in done:
                done.add(id(owner))
                classes.setdefault(type(owner))
                owner = self.census.parents.get(id(owner), (None, None))[0]
        return classes
