"""The hook roots of a tree: functions that run again after every load of weights."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebindlint.index.classes import ClassInfo, FunctionInfo
from rebindlint.index.modules import descend

if TYPE_CHECKING:
    from rebindlint.index.tree import Index

__all__ = ["POST_LOAD", "Hook", "find_hooks", "is_loading_name"]

POST_LOAD = frozenset(
    {"process_weights_after_loading", "post_load_weights", "process_weights_after_loading_block_quant"}
)
_FROM_LOADING = re.compile(
    r"^_?(finalize|prepare|post_load|postprocess|post_process|process_weights|fuse|merge)_\w+$|^wake_up$|^post_load$"
)
_CALL = re.compile(
    rb"\.\s*(_?(?:finalize|prepare|post_load|postprocess|post_process|process_weights|fuse|merge)_\w+|post_load|wake_up)\s*\("
)
_LOADER = re.compile(
    rb"^([ \t]*)(?:async[ \t]+)?def[ \t]+(?:_?load_weights|load_model|wake_up|load_weights_and_postprocess)\b", re.M
)
_LOADING = frozenset({"load_weights", "load_model", "_load_weights", "wake_up", "load_weights_and_postprocess"})
_NOT_RUN_TIME = frozenset(
    {"__init__", "create_weights", "load_weights", "weight_loader", "__post_init__", "__repr__", "extra_repr"}
)


@dataclass(frozen=True, slots=True, eq=False)
class Hook:
    """``function`` runs on an instance of ``receiver`` after each load.

    ``from_loading``: reached from ``load_weights`` itself, so it also runs inside a layerwise reload, on live tensors.
    """

    function: FunctionInfo
    receiver: ClassInfo | None
    from_loading: bool = False

    @property
    def name(self) -> str:
        return f"{self.receiver.name}.{self.function.name}" if self.receiver else self.function.name


def is_loading_name(name: str) -> bool:
    """Whether a function of this name belongs to loading, not to run time."""
    return name in POST_LOAD or name in _NOT_RUN_TIME or name in _LOADING or bool(_FROM_LOADING.match(name))


def find_hooks(index: Index, extra: Iterable[str] = ()) -> tuple[Hook, ...]:
    """Every hook of the tree, ordered by file and line; ``extra`` adds names or ``module:Class.method``."""
    names = set(POST_LOAD)
    explicit = {}
    for entry in extra:
        module, colon, inner = entry.partition(":")
        if colon:
            explicit[(module, inner)] = True
            names.add(inner.rpartition(".")[2])
        else:
            names.add(entry)
    found: dict[int, Hook] = {}
    for info in _methods_named(index, names):
        if info.name in POST_LOAD or info.name in extra or (info.module.name, info.qualified) in explicit:
            found[id(info.node)] = Hook(info, info.owner)
    for info in _reached_from_loading(index, [hook.function for hook in found.values()]):
        found.setdefault(id(info.node), Hook(info, info.owner, from_loading=True))
    hooks = [hook for hook in found.values() if not _is_empty(hook.function)]
    return tuple(sorted(hooks, key=lambda h: (h.function.module.shown, h.function.node.lineno)))


def _methods_named(index: Index, names: set[str]) -> Iterator[FunctionInfo]:
    needles = [f"def {name}(".encode() for name in sorted(names)]
    for module_name, source in sorted(index.sources.items()):
        raw = index.bytes.get(source.shown, b"")
        if any(needle in raw for needle in needles):
            module = index.module(module_name)
            if module is None:
                continue
            for cls in index.classes_of(module):
                for name in names & cls.methods.keys():
                    yield cls.methods[name]


def _reached_from_loading(index: Index, hooks: list[FunctionInfo]) -> list[FunctionInfo]:
    """Methods that ``load_weights`` calls by name to finish what it loaded, transitively.

    Judged by the text of the loading functions: parsing every model of a tree for this would cost more than all hooks.
    """
    wanted = _called_names(hook.node for hook in hooks)
    for source in index.sources.values():
        raw = index.bytes.get(source.shown, b"")
        if any(name in raw for name in (b"load_weights", b"wake_up", b"load_model")) and _LOADER.search(raw):
            wanted |= {m.group(1).decode() for body in _loader_bodies(raw) for m in _CALL.finditer(body)}
    wanted -= POST_LOAD
    found: dict[int, FunctionInfo] = {}
    seen: set[str] = set()
    while wanted - seen:
        new = wanted - seen
        seen |= new
        for info in _methods_named(index, new):
            found[id(info.node)] = info
            wanted |= _called_names([info.node])
        wanted -= POST_LOAD
    return list(found.values())


def _loader_bodies(raw: bytes) -> Iterator[bytes]:
    """The text of each loading function, up to the next line that is indented no deeper."""
    for match in _LOADER.finditer(raw):
        end = re.compile(rb"^[ \t]{0,%d}[^\s#)]" % len(match.group(1)), re.M).search(raw, match.end())
        yield raw[match.end() : end.start() if end else len(raw)]


def _called_names(functions: Iterable[ast.AST]) -> set[str]:
    found = set()
    for function in functions:
        for node in descend(function):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and _FROM_LOADING.match(node.func.attr)
            ):
                found.add(node.func.attr)
    return found


def _is_empty(function: FunctionInfo) -> bool:
    """Nothing but a docstring, ``pass``, ``...``, ``return`` or ``raise``."""
    return isinstance(function.node, ast.Lambda) or all(
        isinstance(node, ast.Pass | ast.Raise)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        or (isinstance(node, ast.Return) and (node.value is None or isinstance(node.value, ast.Constant)))
        for node in function.node.body
    )
