"""The hook roots of a tree: functions that run again after every load of weights."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rebindlint.index.classes import ClassInfo, FunctionInfo
from rebindlint.index.installed import installed_hooks
from rebindlint.index.loaders import (
    LAYER_NAMES,
    Loader,
    binding_loaders,
    bodies,
    find_loaders,
    functions_called,
    overriding_classes,
)
from rebindlint.index.mixins import completing_classes

if TYPE_CHECKING:
    from rebindlint.index.tree import Index

__all__ = ["LAYER_NAMES", "POST_LOAD", "Hook", "belongs_to_loading", "find_hooks", "is_loading_name"]

POST_LOAD = frozenset(
    {"process_weights_after_loading", "post_load_weights", "process_weights_after_loading_block_quant"}
)
_FROM_LOADING = re.compile(
    r"^_?(finalize|prepare|post_load|postprocess|post_process|process_weights|fuse|merge)_\w+$|^wake_up$|^post_load$"
)
_NAME = rb"(_?(?:finalize|prepare|post_load|postprocess|post_process|process_weights|fuse|merge)_\w+|post_load|wake_up)"
_CALL = re.compile(rb"\.\s*%s\s*\(|\bgetattr\([^\n]*?[\"']%s[\"']" % (_NAME, _NAME))
_LOADING = frozenset({"load_weights", "load_model", "_load_weights", "wake_up", "load_weights_and_postprocess"})
_NOT_RUN_TIME = frozenset(
    {"__init__", "create_weights", "load_weights", "weight_loader", "__post_init__", "__repr__", "extra_repr"}
)


_NOT_FOLLOWED = frozenset(
    {*POST_LOAD, *_LOADING, *_NOT_RUN_TIME, "forward", "register_buffer", "register_parameter"}
) - {"post_load_weights"}  # that is what some models call the end of loading


@dataclass(frozen=True, slots=True, eq=False)
class Hook:
    """``function`` runs on an instance of ``receiver`` after each load.

    ``from_loading``: reached from ``load_weights`` itself, so it also runs inside a layerwise reload, on live tensors.
    ``after_model``: called once the whole model is loaded, which a layerwise reload does not do again.
    ``by_name``: only a call of that name in another hook says that it is one. Where that hook's execution gets to it, it is
    judged there.
    ``lazy``: no hook at all, but run-time code that builds something when it is first needed; ``dropped`` are the attributes that
    loading sets back, so that it is built again. ``cut``: a part of the function.
    """

    function: FunctionInfo
    receiver: ClassInfo | None
    from_loading: bool = False
    after_model: bool = False
    by_name: bool = False
    lazy: bool = False
    dropped: frozenset[str] = frozenset()
    cut: bool = False

    @property
    def name(self) -> str:
        return f"{self.receiver.name}.{self.function.name}" if self.receiver else self.function.name

    @property
    def takes_more(self) -> bool:
        """It is given more than its layer, which no loader does."""
        info = self.function
        given = info.positional[1 if self.receiver is not None and not info.is_static else 0 :]
        required = given[: len(given) - len(info.node.args.defaults)] if info.node.args.defaults else given
        return len(required) > 1 and any(name in LAYER_NAMES for name in required)


def is_loading_name(name: str) -> bool:
    """Whether a function of this name belongs to loading, not to run time."""
    return name in POST_LOAD or name in _NOT_RUN_TIME or name in _LOADING or bool(_FROM_LOADING.match(name))


def belongs_to_loading(index: Index, name: str) -> bool:
    """As ``is_loading_name``, but a name such as ``prepare_…`` counts only where ``find_hooks`` found a hook of that name."""
    if name in POST_LOAD or name in _LOADING or not _FROM_LOADING.match(name):
        return is_loading_name(name) or name.startswith(("load_", "_load_"))
    return name in index.hook_names


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
            found[id(info.node)] = _post_load(index, info)
    for installed in installed_hooks(index, POST_LOAD | {entry for entry in extra if ":" not in entry}):
        found.setdefault(id(installed.function.node), Hook(installed.function, installed.receiver))
    loaders = find_loaders(index)
    for info in _reached_from_loading(index, loaders):
        found.setdefault(id(info.node), Hook(info, info.owner, from_loading=True))
    for hook in _reached_from_hooks(index, list(found.values())):
        found.setdefault(id(hook.function.node), hook)
    overriding = _called_by_loaders(index, loaders, found)
    hooks = [hook for hook in found.values() if not _is_empty(hook.function)]
    hooks += overriding
    hooks += [completed for hook in hooks for completed in _completed(index, hook)]
    index.hook_names = frozenset(hook.function.name for hook in hooks)
    return tuple(sorted(hooks, key=lambda h: (h.function.module.shown, h.function.node.lineno, h.name)))


def _completed(index: Index, hook: Hook) -> list[Hook]:
    """The same hook on classes that have what it calls, where its own class does not."""
    if hook.receiver is None or hook.function.owner is not hook.receiver:
        return []
    return [replace(hook, receiver=cls) for cls in completing_classes(index, hook.receiver, hook.function)]


def _post_load(index: Index, info: FunctionInfo) -> Hook:
    """A module's own hook that takes no argument is no layer's: the model's loader calls it, or ``load_weights`` itself."""
    whole = info.name in POST_LOAD and len(info.positional) == 1 and not info.is_static
    if not whole or info.owner is None or not index.is_module(info.owner):
        return Hook(info, info.owner)
    raw = index.bytes.get(info.module.shown, b"")
    by_loader = any(f".{info.name}(".encode() in body for body in bodies(raw))
    return Hook(info, info.owner, from_loading=by_loader, after_model=not by_loader)


def _methods_named(index: Index, names: set[str]) -> Iterator[FunctionInfo]:
    defined = re.compile(b"def (?:%s)\\(" % b"|".join(re.escape(name).encode() for name in sorted(names)))
    for module_name, source in sorted(index.sources.items()):
        if defined.search(index.bytes.get(source.shown, b"")):
            module = index.module(module_name)
            if module is None:
                continue
            for cls in index.classes_of(module):
                for name in sorted(names & cls.methods.keys()):
                    yield cls.methods[name]


def _reached_from_loading(index: Index, loaders: list[Loader]) -> list[FunctionInfo]:
    """Methods that ``load_weights`` calls by name to finish what it loaded, transitively.

    Judged by the text of the loading functions: parsing every model of a tree for this would cost more than all hooks.
    """
    wanted = {name.decode() for loader in loaders for names in _CALL.findall(loader.text) for name in names if name}
    wanted -= POST_LOAD
    found: dict[int, FunctionInfo] = {}
    seen: set[str] = set()
    while wanted - seen:
        new = wanted - seen
        seen |= new
        for info in _methods_named(index, new):
            found[id(info.node)] = info
            wanted |= {name for name, _, _ in _named_calls(info)}
        wanted -= POST_LOAD
    return list(found.values())


def _called_by_loaders(index: Index, loaders: list[Loader], found: dict[int, Hook]) -> list[Hook]:
    """Adds what models do while or after they load weights; gives the same for classes that override a part of it."""
    called = functions_called(index, loaders, _NOT_FOLLOWED)
    for entry in called:
        info = entry.function
        found.setdefault(id(info.node), Hook(info, info.owner, from_loading=not entry.between, by_name=True))
    for info in binding_loaders(index, loaders):
        found.setdefault(id(info.node), Hook(info, info.owner, from_loading=True))
    names = frozenset(entry.function.name for entry in called) - POST_LOAD
    hooks = [found[id(entry.function.node)] for entry in called]
    return [replace(hook, receiver=cls) for hook in hooks for cls in overriding_classes(index, hook.function, names)]


def _reached_from_hooks(index: Index, hooks: list[Hook]) -> list[Hook]:
    """Methods that hooks call by name, transitively, on receivers whose class the call does not exclude."""
    found: dict[int, Hook] = {}
    while hooks:
        calls = [(hook, name, on_self, kinds) for hook in hooks for name, on_self, kinds in _named_calls(hook.function)]
        candidates = _by_name(index, {name for _, name, _, _ in calls})
        hooks = []
        for hook, name, on_self, kinds in calls:
            bounds = _bounds(index, hook, on_self, kinds)
            for info in candidates.get(name, ()):
                if id(info.node) not in found and _may_be(index, info.owner, bounds):
                    reached = Hook(info, info.owner, after_model=hook.after_model, by_name=True)
                    found[id(info.node)] = reached
                    hooks.append(reached)
    return list(found.values())


def _by_name(index: Index, names: set[str]) -> dict[str, list[FunctionInfo]]:
    found: dict[str, list[FunctionInfo]] = {}
    for info in _methods_named(index, names) if names else ():
        found.setdefault(info.name, []).append(info)
    return found


def _bounds(index: Index, hook: Hook, on_self: bool, kinds: tuple[ast.expr, ...]) -> list[ClassInfo]:
    """The classes that the receiver of a call is known to be of one of; empty when nothing is known."""
    if on_self:
        return [hook.receiver] if hook.receiver is not None else []
    resolved = [index.resolve_expression(hook.function.module, kind) for kind in kinds]
    return [cls for cls in resolved if isinstance(cls, ClassInfo)] if resolved else []


def _may_be(index: Index, owner: ClassInfo | None, bounds: list[ClassInfo]) -> bool:
    return not bounds or (
        owner is not None and any(index.is_subclass(owner, b) or index.is_subclass(b, owner) for b in bounds)
    )


def _named_calls(function: FunctionInfo) -> list[tuple[str, bool, tuple[ast.expr, ...]]]:
    """Calls ``x.finalize_y(...)`` and looks ``getattr(x, "finalize_y", …)``: the name, whether ``x`` is ``self``, and what ``isinstance``
    around it says of ``x``.
    """
    found: list[tuple[str, bool, tuple[ast.expr, ...]]] = []
    stack: list[tuple[ast.AST, dict[str, tuple[ast.expr, ...]]]] = [(function.node, {})]
    while stack:
        node, kinds = stack.pop()
        if isinstance(node, ast.Call):
            name, target = _named(node)
            if _FROM_LOADING.match(name) and name not in POST_LOAD:
                variable = target.id if isinstance(target, ast.Name) else ""
                found.append((name, bool(variable) and variable == function.self_name, kinds.get(variable, ())))
        narrowed = {**kinds, **_narrowed(node.test)} if isinstance(node, ast.If) else kinds
        body = set(map(id, node.body)) if isinstance(node, ast.If) else set()
        stack.extend((child, narrowed if id(child) in body else kinds) for child in ast.iter_child_nodes(node))
    return found


def _named(call: ast.Call) -> tuple[str, ast.expr]:
    """The name of what is called of an object, or looked up on it by a literal, and the object; "" when it is neither."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr, call.func.value
    if isinstance(call.func, ast.Name) and call.func.id == "getattr" and len(call.args) > 1:
        name = call.args[1]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            return name.value, call.args[0]
    return "", call.func


def _narrowed(test: ast.expr) -> dict[str, tuple[ast.expr, ...]]:
    """``isinstance(x, C)``, alone or as a part of a conjunction: what it says of ``x``."""
    found: dict[str, tuple[ast.expr, ...]] = {}
    for part in test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]:
        if (
            isinstance(part, ast.Call)
            and isinstance(part.func, ast.Name)
            and part.func.id == "isinstance"
            and len(part.args) == 2
            and isinstance(part.args[0], ast.Name)
        ):
            kinds = part.args[1]
            found[part.args[0].id] = tuple(kinds.elts) if isinstance(kinds, ast.Tuple) else (kinds,)
    return found


def _is_empty(function: FunctionInfo) -> bool:
    """Nothing but a docstring, ``pass``, ``...``, ``return`` or ``raise``."""
    if isinstance(function.node, ast.Lambda):
        return not isinstance(function.node.body, ast.Call)
    return all(
        isinstance(node, (ast.Pass, ast.Raise))
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        or (isinstance(node, ast.Return) and (node.value is None or isinstance(node.value, ast.Constant)))
        for node in function.node.body
    )
