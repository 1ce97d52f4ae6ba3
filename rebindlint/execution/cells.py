"""Cells: every place reachable from the hook's objects that holds a tensor."""

from __future__ import annotations

from dataclasses import dataclass

from rebindlint.execution.factories import spelled
from rebindlint.execution.foreign import Holder
from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.values import (
    BoundMethod,
    ClassValue,
    DictValue,
    Env,
    Function,
    ListValue,
    ModuleValue,
    Obj,
    Partial,
    Scalar,
    Storage,
    Tensor,
    Unknown,
    Value,
)

__all__ = ["Captured", "Edge", "owned_storages", "walk"]

_MAX_CELLS = 4_000


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """``holder`` (an object, list, dict, environment) holds something under ``key``; ``text`` is its spelling."""

    holder: object
    key: object
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Captured:
    """A cell as it was at one moment. ``content`` and ``epochs`` are frozen, because storages are written later."""

    edges: tuple[Edge, ...]
    tensor: Tensor
    storage: Storage
    content: object
    epochs: int
    shape: int
    dtype: str
    strided: bool
    registered: bool

    @property
    def path(self) -> str:
        return "".join(edge.text for edge in self.edges)

    @property
    def last(self) -> Edge:
        return self.edges[-1]


def walk(
    m: Interpreter, roots: list[tuple[str, Value]], numbers: list[tuple[tuple[Edge, ...], Scalar]] | None = None
) -> list[Captured]:
    """All cells below the roots, shortest paths first; cycles end at what was seen.

    ``numbers`` collects the places of host numbers that were read from weights.
    """
    found: list[Captured] = []
    seen: set[int] = set()
    queue: list[tuple[tuple[Edge, ...], Value]] = [((Edge(None, name, name),), value) for name, value in roots]
    while queue and len(found) < _MAX_CELLS:
        edges, value = queue.pop(0)
        if isinstance(value, Unknown) and value.tensor is not None:
            value = value.tensor
        if isinstance(value, Tensor):
            holder = edges[-1].holder
            registered = isinstance(holder, Obj) and holder.is_module and edges[-1].key in holder.registered
            found.append(
                Captured(
                    edges,
                    value,
                    value.storage,
                    m.term(value),
                    value.storage.epochs,
                    value.shape,
                    value.dtype,
                    value.strided,
                    registered,
                )
            )
            continue
        if isinstance(value, Scalar):
            if numbers is not None and value.epochs and len(edges) > 1:
                numbers.append((edges, value))
            continue
        if id(value) in seen or len(edges) > 8:
            continue
        if not isinstance(value, Holder):  # as a tensor, it is a cell of all that hold it
            seen.add(id(value))
        queue.extend(((*edges, edge), inner) for edge, inner in _children(m, roots, value))
    return found


def _children(m: Interpreter, roots: list[tuple[str, Value]], value: Value) -> list[tuple[Edge, Value]]:
    if isinstance(value, Obj):
        return [
            (Edge(value, name, _text(m, roots, name) if name[:1] in ("[", "{") else f".{name}"), v)
            for name, v in value.attributes.items()
        ]
    if isinstance(value, ListValue):
        return [(Edge(value, i, f"[{i}]"), v) for i, v in enumerate(value.items)]
    if isinstance(value, DictValue):
        return [(Edge(value, key, f"[{key!r}]"), v) for key, v in value.items.items()]
    if isinstance(value, Partial):
        return [(Edge(value, i, f".args[{i}]"), v) for i, v in enumerate(value.args)] + [
            (Edge(value, k, f".keywords[{k!r}]"), v) for k, v in value.keywords.items()
        ]
    if isinstance(value, BoundMethod):
        return [(Edge(value, "__self__", ".__self__"), value.receiver)]
    if isinstance(value, Function):
        inner = [(Edge(value, "__self__", ".__self__"), value.receiver)] if value.receiver is not None else []
        return inner + _closure(value.env, value.info.mentioned)
    return []


def _text(m: Interpreter, roots: list[tuple[str, Value]], name: str) -> str:
    """A slot as it is, an attribute whose name is computed under its real name."""
    return name if name.startswith("[") else f".{spelled(m, roots, name)}"


def _closure(env: Env | None, mentioned: frozenset[str]) -> list[tuple[Edge, Value]]:
    """The variables around a function that it holds: those that it mentions."""
    found: list[tuple[Edge, Value]] = []
    while env is not None:
        found.extend(
            (Edge(env, name, f".<closure {name}>"), v)
            for name, v in env.variables.items()
            if name in mentioned and not isinstance(v, (ClassValue, ModuleValue, Scalar))
        )
        env = env.parent
    return found


def owned_storages(m: Interpreter, roots: list[tuple[str, Value]]) -> set[int]:
    """Numbers of the storages that something still owns."""
    return {cell.storage.number for cell in walk(m, roots)} | m.outside
