"""What the recorder needs to know about an operator, read once from its schema, its tags and the registry of kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch

__all__ = ["WAITS", "OperatorFacts", "backend_keys", "facts_of", "flat", "named_arguments", "static_after_all"]

_BUILT_IN: Final = frozenset(
    {"aten", "prim", "prims", "_prims", "quantized", "profiler", "inductor", "c10d", "_c10d_functional"}
)
_UNINITIALISED: Final = frozenset(
    {"empty", "empty_strided", "empty_like", "empty_permuted", "new_empty", "new_empty_strided", "empty_quantized"}
)
_KERNEL_KEYS: Final = ("CPU", "CUDA", "XPU", "HPU", "MPS", "PrivateUse1", "CompositeExplicitAutograd")
_MASKS: Final = (torch.bool, torch.uint8)
WAITS: Final = "waits for a value of a tensor (a synchronisation)"


@dataclass(frozen=True, slots=True)
class OperatorFacts:
    names: tuple[str, ...]  # of the arguments, in order
    written: frozenset[str]  # names of the arguments that the schema says are written
    mutable: bool
    uninitialised: bool  # allocates and writes nothing
    lift: bool  # hands over a tensor that was built from Python data
    obstacle: str  # why a graph could not hold it, "" when it can
    inside: bool  # its kernel is Python and has to be looked into


def facts_of(func: Any, look_inside: frozenset[str]) -> OperatorFacts:
    schema = func._schema
    written = frozenset(a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write)
    base_name = schema.name.rpartition("::")[2]
    return OperatorFacts(
        names=tuple(a.name for a in schema.arguments),
        written=written,
        mutable=bool(written) or schema.is_mutable,
        uninitialised=func.namespace == "aten" and base_name in _UNINITIALISED,
        lift=func.namespace == "aten" and base_name in ("lift_fresh", "lift_fresh_copy", "lift"),
        obstacle=_obstacle(func),
        inside=func.namespace in look_inside or _has_python_kernel(func),
    )


def _obstacle(func: Any) -> str:
    tags = set(getattr(func, "tags", ()))
    if torch.Tag.data_dependent_output in tags or func._schema.name == "aten::is_nonzero":
        return WAITS
    if torch.Tag.dynamic_output_shape in tags:
        return "makes a tensor whose shape depends on values"
    return ""


def _has_python_kernel(func: Any) -> bool:
    """Was the operator's kernel for a backend registered from Python (``torch.library``)?"""
    if func.namespace in _BUILT_IN:
        return False
    name = func._schema.name.rpartition("::")[2]
    if func._schema.overload_name:
        name = f"{name}.{func._schema.overload_name}"
    registered: set[str] = getattr(torch.library, "_impls", set())
    return any(f"{func.namespace}/{name}/{key}" in registered for key in _KERNEL_KEYS)


def static_after_all(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Is the shape known although the operator's tag says that it may depend on values?"""
    name = func._schema.name
    if name in ("aten::index", "aten::_unsafe_index"):  # only masks have to be counted
        return all(not isinstance(i, torch.Tensor) or i.dtype not in _MASKS for i in flat(args[1:]))
    if name == "aten::repeat_interleave":
        return kwargs.get("output_size") is not None
    return False


def backend_keys(args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch._C.DispatchKeySet | None:
    """The dispatch key of the device that the operator runs on; None when no argument is a tensor."""
    for value in flat((args, tuple(kwargs.values()))):
        if isinstance(value, torch.Tensor):
            name = torch._C._dispatch_key_for_device(value.device.type)
            return torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, name))
    return None


def flat(value: Any) -> Iterator[Any]:
    """The members of nested lists and tuples, the only containers that operators take and give."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from flat(item)
    else:
        yield value


def named_arguments(facts: OperatorFacts, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for index, value in enumerate(args):
        name = facts.names[index] if index < len(facts.names) else f"argument {index}"
        for item in flat(value):
            yield name, item
    for name, value in kwargs.items():
        for item in flat(value):
            yield name, item
