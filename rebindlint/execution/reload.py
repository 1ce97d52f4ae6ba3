"""What a reload protocol does between the runs: direct, layerwise, or sleep."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from rebindlint.execution import calls
from rebindlint.execution.cells import Captured
from rebindlint.execution.containers import fill_containers
from rebindlint.execution.interpreter import (
    Interpreter,
    OutOfBudget,
    Raised,
)
from rebindlint.execution.naming import names_weight
from rebindlint.execution.values import (
    DELETED,
    LOST,
    SECOND,
    Const,
    DictValue,
    Function,
    Obj,
    Storage,
    Tensor,
    Unknown,
    Value,
)
from rebindlint.index.classes import ClassInfo
from rebindlint.index.hooks import POST_LOAD, Hook
from rebindlint.index.loaders import LOADED
from rebindlint.model import Protocol

__all__ = ["Restore", "Unloadable", "reload"]

_FLAG = "_already_called_process_weights_after_loading"


class Unloadable(Raised):
    """The weights cannot be loaded again after the first run."""


@dataclass(slots=True, eq=False)
class Restore:
    """What layerwise reloading puts back after the hook: per module the tensors it remembered, by name."""

    remembered: list[tuple[Obj, dict[str, Tensor]]]
    unreplaced: list[tuple[Obj, str, Tensor]] = field(default_factory=list)

    def apply(self, m: Interpreter) -> None:
        for obj, name, kept in self.unreplaced:
            now = obj.attributes.get(name)
            if isinstance(now, Tensor) and now is not kept:
                if now.storage is not kept.storage:
                    m.write(kept, m.term(now), now.storage.epochs)
                m.sites.pop((id(obj), name), None)
                obj.attributes[name] = kept
        for obj, tensors in self.remembered:
            for name, kept in tensors.items():
                now = obj.attributes.get(name)
                if isinstance(now, Tensor) and now is not kept:
                    if name in obj.unsaved and name not in obj.registered:
                        raise Raised  # the buffer cannot be registered where the hook put a plain attribute
                    unsaved = name in obj.unsaved and m.index.leaves_unsaved
                    if now.storage is not kept.storage and not unsaved:
                        raw = now.storage.weight and now.storage.number not in m.copies
                        if raw and kept.storage.empty and kept.storage.born:
                            raise Raised  # what the first run emptied has no room for what was loaded
                        m.write(kept, m.term(now), now.storage.epochs)
                    m.sites.pop((id(obj), name), None)
            for name in list(obj.registered):
                if name not in tensors:
                    obj.attributes[name] = DELETED
                    obj.registered.discard(name)
            for name, kept in tensors.items():
                obj.attributes[name] = kept
                obj.registered.add(name)


def reload(
    m: Interpreter,
    hook: Hook,
    roots: list[tuple[str, Value]],
    captured: list[Captured],
    protocol: Protocol,
    restored: bool,
) -> Restore:
    m.restored = restored and m.index.protocol_of(hook.function.module.name) is not Protocol.DIRECT
    if m.lost_modules:
        raise Unloadable  # the loader finds no module for the checkpoint's weights
    modules = _modules(captured, roots)
    if any(_refuses_weights(m, obj) for obj in modules):
        raise Unloadable
    bare = protocol is Protocol.DIRECT and m.index.protocol_of(hook.function.module.name) is Protocol.DIRECT
    if bare and any(_is_set(obj.attributes.get(name)) for obj in modules for name in m.index.refusing):
        raise Unloadable
    if protocol is Protocol.SLEEP:
        _discard(m, captured)
    live = protocol is Protocol.DIRECT or hook.from_loading or _hooks_itself(m, hook, roots)
    restore = Restore([])
    if protocol is Protocol.DIRECT:
        _prepare(m, hook, roots)
    elif hook.from_loading:
        restore.unreplaced += _unreplaced(m, captured)
    for storage in m.weights:
        if storage.number in m.outside:
            _refresh(m, storage)
    for obj in {id(root): root for _, root in roots if isinstance(root, Obj)}.values() if hook.dropped else ():
        _drop(obj, hook.dropped)
    for obj in modules:
        _reset_flags(m, obj)
        if live:
            _load_into_live(m, obj, restored=restored, created=restored or not bare)
        else:
            restore.remembered.append((obj, _put_fresh(m, obj)))
    return restore


def _unreplaced(m: Interpreter, captured: list[Captured]) -> Iterator[tuple[Obj, str, Tensor]]:
    """What a loading function itself binds under the names that layerwise reloading leaves where they are, beside what is loaded.

    No weight loader fills it, so the reload takes the module for unfinished until loading is over, and copies back by name then.
    """
    for cell in captured:
        holder, name = cell.last.holder, str(cell.last.key)
        if (
            name in m.index.kept_live
            and cell.tensor.is_parameter
            and isinstance(holder, Obj)
            and (holder.is_module or holder.cls is None)
            and any(names_weight(other) for other in holder.initial.keys() - {name})
        ):
            yield holder, name, cell.tensor


def _reset_flags(m: Interpreter, obj: Obj) -> None:
    """Weight loaders of the module may set constants on it, as to say that what was loaded is as raw as before the hook."""
    for name, value in _set_by_loaders(m, obj.cls) if obj.cls is not None else ():
        if isinstance(obj.attributes.get(name), Const):
            obj.attributes[name] = Const(value)


def _set_by_loaders(m: Interpreter, cls: ClassInfo) -> list[tuple[str, object]]:
    key = ("set by loaders", id(cls))
    known: list[tuple[str, object]] | None = m.index.pure.get(key)
    if known is None:
        known = m.index.pure[key] = [
            (name, write.value.value)
            for base in m.index.mro(cls)
            if LOADED in base.module.text
            for name, writes in base.writes.items()
            for write in writes
            if isinstance(write.value, ast.Constant) and not write.conditional and LOADED in write.function.positional
        ]
    return known


def _drop(obj: Obj, names: frozenset[str]) -> None:
    """What loading sets back, so that run-time code builds it again."""
    for name in sorted(names & obj.attributes.keys()):
        kept = obj.attributes[name]
        obj.attributes[name] = DictValue({}, kept.label) if isinstance(kept, DictValue) else Const(None)


def _prepare(m: Interpreter, hook: Hook, roots: list[tuple[str, Value]]) -> None:
    """What the hook's own class undoes before weights are loaded again, where the engine asks it to."""
    method = m.index.method(hook.receiver, "restore_weights_before_loading") if hook.receiver is not None else None
    receiver = next((value for name, value in roots if name == "self"), None)
    layers = [value for name, value in roots if name != "self" and isinstance(value, Obj) and value.is_module]
    if method is None or receiver is None:
        return
    default, m.oracle.default = m.oracle.default, 1  # what it asks for is there, as far as nothing else says
    try:
        calls.enter(m, Function(method, None, receiver), [*layers[:1]], {}, method.node)
    except (Raised, OutOfBudget, RecursionError):
        return
    finally:
        m.oracle.default = default
        m.frames.clear()
        m.inside_helper = 0
        m.sites, m.moved, m.moved_earlier, m.copies, m.conditions, m.steps = {}, {}, {}, {}, [], 0


def _refuses_weights(m: Interpreter, obj: Obj) -> bool:
    """The module's own weight loader begins by raising once an attribute is set, which the first run has done."""
    loader = m.index.method(obj.cls, "weight_loader") if obj.cls is not None else None
    if loader is None or isinstance(loader.node, ast.Lambda):
        return False
    for statement in loader.node.body:
        test = statement.test if isinstance(statement, ast.If) else None
        if (
            isinstance(statement, ast.If)
            and isinstance(test, ast.Attribute)
            and isinstance(test.value, ast.Name)
            and test.value.id == loader.self_name
            and isinstance(statement.body[-1], ast.Raise)
        ):
            value = obj.attributes.get(test.attr)
            if isinstance(value, Const) and value.value is True:
                return True
    return False


def _discard(m: Interpreter, captured: list[Captured]) -> None:
    """Sleeping at level 2 keeps addresses and gives contents away; registered buffers alone are saved and put back."""
    saved = {cell.storage.number for cell in captured if cell.registered and not cell.tensor.is_parameter}
    for cell in captured:
        storage = cell.storage
        if storage.number not in saved and not storage.on_host:
            storage.content, storage.epochs = m.terms.of("lost", storage.number), LOST


def _hooks_itself(m: Interpreter, hook: Hook, roots: list[tuple[str, Value]]) -> bool:
    """A module (or its backend) whose own hook is called, not its quantisation method: deferred, on live tensors.

    A module without a hook of its own has its method called by the hook of its quantisation method.
    """
    cls = hook.receiver
    if hook.by_name and cls is not None and m.index.is_module(cls):
        return any(m.index.method(cls, name) is not None for name in POST_LOAD)
    return not any(name != "self" and isinstance(value, Obj) and value.is_module for name, value in roots)


def _modules(captured: list[Captured], roots: list[tuple[str, Value]]) -> list[Obj]:
    found: dict[int, Obj] = {id(v): v for _, v in roots if isinstance(v, Obj) and v.is_module}
    for cell in captured:
        holder = cell.last.holder
        if isinstance(holder, Obj) and holder.is_module:
            found.setdefault(id(holder), holder)
    return list(found.values())


def _refresh(m: Interpreter, storage: Storage) -> None:
    storage.content, storage.epochs, storage.changed = m.terms.of("weight", storage.weight), SECOND, 2


def _load_into_live(
    m: Interpreter,
    obj: Obj,
    *,
    restored: bool,
    created: bool = True,
    names: frozenset[str] | set[str] | None = None,
) -> None:
    """Loaders write into the parameter that stands under the checkpoint's name now.

    ``restored``: the framework gives them the checkpoint's dtype and shape back before it loads, as it must where a hook
    insists on these. ``created``: it creates deleted ones again, as it must where the tree's own engine reloads otherwise.
    An engine whose own reload is direct does neither: what is deleted stays so, and a hook that reads it raises.
    """
    before = obj.initial.keys() - obj.plain
    for name in sorted(before if names is None else before & names):
        value = obj.attributes.get(name)
        label = f"{obj.label}.{name}"
        if created and _is_covered(obj, name, value):
            raise Unloadable  # no loader finds a parameter of that name, and none can be registered again
        if isinstance(value, Tensor):
            if (name in obj.registered and value.is_parameter) or value.storage.weight:
                term = m.terms.of("weight", label)
                content = m.terms.of("loaded", label, value.path) if value.path else term
                m.loaded[(content, value.path)] = term
                value.storage.content, value.storage.epochs, value.storage.changed = content, SECOND, 2
                fill_containers(m, value)
                if restored and obj.initial[name][0]:
                    value.dtype, value.shape = obj.initial[name]
        elif created and _is_gone(value):
            obj.attributes[name] = _checkpoint_tensor(m, obj, name)
            obj.registered.add(name)


def _is_set(value: Value | None) -> bool:
    """Known to be there, and not to be None."""
    return value is not None and not isinstance(value, Unknown) and not _is_gone(value)


def _is_covered(obj: Obj, name: str, now: Value | None) -> bool:
    """Whether something that is no parameter stands under the name of one that was registered before the hook."""
    return name in obj.loaded and name not in obj.registered and now is not None and not _is_gone(now)


def _is_gone(value: Value | None) -> bool:
    """Deleted or set to None: a checkpoint still has a tensor of that name."""
    return value is DELETED or (isinstance(value, Const) and value.value is None)


def _checkpoint_tensor(m: Interpreter, obj: Obj, name: str) -> Tensor:
    tensor = m.weight(f"{obj.label}.{name}", is_parameter=True)
    if obj.initial[name][0]:
        tensor.dtype, tensor.shape = obj.initial[name]
    return tensor


def _put_fresh(m: Interpreter, obj: Obj) -> dict[str, Tensor]:
    """Checkpoint-shaped tensors stand in for the remembered ones while the hook runs again."""
    remembered = {name: v for name in sorted(obj.registered) if isinstance(v := obj.attributes.get(name), Tensor)}
    live = m.index.kept_live & obj.registered
    if live:
        _load_into_live(m, obj, restored=False, names=live)
    before = obj.initial.keys() - obj.plain
    for name in obj.registered - before - live:
        obj.attributes[name] = DELETED
        obj.absent.add(name)
        obj.registered.discard(name)
    for name in sorted(before - live):
        old = obj.attributes.get(name)
        if _is_covered(obj, name, old):
            if not m.index.restores_over_plain:
                raise Raised  # something that is no parameter stands under the name that one is to be registered under
            obj.attributes[name] = old = DELETED
        if isinstance(old, Tensor) and not old.is_parameter and not old.storage.weight and name not in obj.loaded:
            continue  # nothing is loaded for it, and so it is left as it is
        if name in remembered or _is_gone(old):
            obj.attributes[name] = _checkpoint_tensor(m, obj, name)
            obj.registered.add(name)
    if _FLAG in obj.attributes:
        obj.attributes[_FLAG] = DELETED
        obj.absent.add(_FLAG)
    return remembered
