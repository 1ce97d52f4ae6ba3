"""The hooks of a release, and what a mutator has to know about each: its objects, a weight, who reads them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import libcst as cst
import libcst.matchers as m

from benchmarks.mutation.positions import runs_anything
from benchmarks.mutation.splice import Cut, cut
from rebindlint.check import diagnose
from rebindlint.config import Config
from rebindlint.discover import discover
from rebindlint.execution.run import execute_hook
from rebindlint.index import Index, build_index, find_hooks
from rebindlint.index.classes import FunctionInfo
from rebindlint.index.hooks import Hook, is_loading_name
from rebindlint.model import Diagnostic, Protocol, RebindlintError, Severity
from rebindlint.registry import rules

__all__ = ["Object", "Subject", "candidates", "findings", "index_of", "name_of", "subject_of", "weight_names"]

_LAYERS = ("layer", "module", "mod", "model")
_RUN_TIME = (
    "apply", "apply_weights", "apply_monolithic", "forward", "forward_cuda", "forward_native", "forward_impl", "forward_mqa",
    "apply_scaled_mm", "apply_block_scaled_mm", "embedding", "__call__",
)  # fmt: skip
_NOT_RUN_TIME = re.compile(
    r"^_?_?(init|get|is|can|supports|create|maybe|make|set|load|from|validate|repr|str|build|init)_"
)
_REGISTERED = re.compile(rb"register_parameter\(\s*[\"'](\w+)[\"']")


@dataclass(frozen=True, slots=True, eq=False)
class Object:
    """Something that the hook is given and that run-time code sees: ``reader`` is a run-time method in which it has this name."""

    name: str
    is_module: bool
    reader: Cut


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """A hook. ``weight`` is a tensor that loading fills, as an expression at the hook's entry, or empty."""

    release: str
    hook: Hook
    cut: Cut
    objects: tuple[Object, ...]
    weight: str = ""
    constructor: Cut | None = None  # of the receiver's own class
    creator: Cut | None = None  # ``create_weights`` of the receiver's own class, when it takes the layer
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.release}/{name_of(self.hook)}"


def name_of(hook: Hook) -> str:
    return f"{hook.function.module.name}:{hook.name}"


def index_of(folder: Path, package: str) -> Index:
    config = Config(root=folder, jobs=1)
    return build_index(discover([package], config, cwd=folder).context, config)


def findings(index: Index, hook: Hook) -> list[Diagnostic]:
    """The errors and warnings that one hook alone gives."""
    executed = execute_hook(index, hook, (Protocol.DIRECT, Protocol.LAYERWISE))
    found = diagnose(executed.facts, rules(), index, index.config)
    return [d for d in found if d.severity is not Severity.NOTE]


def candidates(index: Index) -> list[Hook]:
    """Post-load hooks of layers and of what layers own. Those of engines and workers, which own no layer, are left out."""
    return [hook for hook in find_hooks(index) if _has_layers(index, hook)]


def _has_layers(index: Index, hook: Hook) -> bool:
    if hook.receiver is None or index.is_parameter_class(hook.receiver) or hook.function.is_static:
        return False
    return not hook.from_loading or index.is_module(hook.receiver)


def weight_names(index: Index) -> frozenset[str]:
    """Names under which parameters are registered anywhere in the tree."""
    return frozenset(name.decode() for raw in index.bytes.values() for name in _REGISTERED.findall(raw))


def subject_of(index: Index, release: str, hook: Hook, weights: frozenset[str]) -> Subject | None:
    """None when no run-time method reads anything that the hook is given."""
    try:
        own = cut(hook.function)
    except RebindlintError:
        return None
    objects = tuple(_objects(index, hook))
    if not objects:
        return None
    assert hook.receiver is not None
    methods = hook.receiver.methods
    creator = methods.get("create_weights")
    takes_layer = creator is not None and "layer" in _arguments(creator)
    holders = [name for name in _arguments(hook.function)[1:] if name in _LAYERS]
    if index.is_module(hook.receiver):  # elsewhere an attribute may be a property that gives None
        holders.append(hook.function.self_name)
    weight = next(_weights(own, hook, holders, weights, methods.get("create_weights")), "")
    constructor = methods.get("__init__")
    return Subject(
        release,
        hook,
        own,
        objects,
        weight,
        cut(constructor) if constructor is not None else None,
        cut(creator) if creator is not None and takes_layer else None,
    )


def _objects(index: Index, hook: Hook) -> Iterator[Object]:
    assert hook.receiver is not None
    own = hook.function.self_name
    reader = _reader(index, hook, own)
    if own and reader is not None:
        yield Object(own, index.is_module(hook.receiver), reader)
    layer = next((name for name in _arguments(hook.function)[1:] if name in _LAYERS), None)
    if layer is not None:
        reader = _reader(index, hook, layer)
        if reader is not None:
            yield Object(layer, True, reader)


def _arguments(function: FunctionInfo) -> list[str]:
    spec = function.node.args
    return [a.arg for a in [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]]


def _reader(index: Index, hook: Hook, name: str) -> Cut | None:
    """A method of the receiver that runs between loads, with something of this name at hand."""
    assert hook.receiver is not None
    for cls in index.mro(hook.receiver):
        others = sorted(n for n in cls.methods if not _NOT_RUN_TIME.match(n) and not is_loading_name(n))
        for method in [*(n for n in _RUN_TIME if n in cls.methods), *others]:
            info = cls.methods[method]
            if info.is_static or info.is_classmethod or info.is_property or name not in _arguments(info):
                continue
            if isinstance(info.node, ast.AsyncFunctionDef) or "abstractmethod" in info.decorators:
                continue
            found = cut(info)
            if runs_anything(found.node):
                return found
    return None


def _weights(
    own: Cut, hook: Hook, holders: list[str], names: frozenset[str], creator: FunctionInfo | None
) -> Iterator[str]:
    """Tensors that exist whenever the hook runs: read in a statement of its own body, or registered in one of ``create_weights``."""
    text = own.tree.code
    for holder in holders:
        for statement in own.node.body.body:
            if isinstance(statement, cst.SimpleStatementLine):
                for node in m.findall(statement, m.Attribute(value=m.Name(holder))):
                    assert isinstance(node, cst.Attribute)
                    if node.attr.value in names and not is_released(text, node.attr.value):
                        yield f"{holder}.{node.attr.value}"
    if creator is not None and "layer" in _arguments(creator) and "layer" in _arguments(hook.function):
        for line in creator.node.body if not isinstance(creator.node, ast.Lambda) else ():
            found = (
                re.match(r"layer\.register_parameter\('(\w+)'", ast.unparse(line))
                if isinstance(line, ast.Expr)
                else None
            )
            if found is not None and not is_released(text, found.group(1)):
                yield f"layer.{found.group(1)}"


def is_released(text: str, name: str) -> bool:
    """Whether a function may take the attribute away again: it would not be there when a graph is captured."""
    return bool(
        re.search(rf"del [^\n]*\.{name}\b|\.{name}\s*=\s*None|delattr\([^)]*[\"']{name}|[\"']{name}[\"'],\s*None", text)
    )
