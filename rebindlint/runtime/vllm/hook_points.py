"""Where the plugin hooks into vLLM, by identity and whatever is imported when.

Functions are wrapped in the module that defines them as soon as it has been imported, before anybody can bind them by
name; where they have been bound already, every module attribute that *is* the function is replaced. Methods of a
worker are wrapped on the classes that define them when the first worker of a class is made, so that workers of other
platforms are covered as well. `Hooks.uninstall` puts everything back.

A release that lacks a hook point is no error: `Hooks.missing` names what was not found.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, NamedTuple, Protocol

__all__ = ["FUNCTIONS", "WORKER_BASE", "WORKER_METHODS", "Hooks", "Observer"]

FUNCTIONS: Final = {
    "vllm.model_executor.model_loader.reload.layerwise": (
        "initialize_layerwise_reload",
        "finalize_layerwise_reload",
        "finalize_layerwise_processing",
    ),
    "vllm.model_executor.model_loader.utils": ("process_weights_after_loading",),
}
WORKER_BASE: Final = ("vllm.v1.worker.worker_base", "WorkerBase")
WORKER_METHODS: Final = (
    "load_model",
    "execute_model",
    "reload_weights",
    "init_weight_transfer_engine",
    "start_weight_update",
    "start_draft_weight_update",
    "update_weights",
    "finish_weight_update",
    "sleep",
    "discard",
    "wake_up",
)


class Observer(Protocol):
    """Told of every call of a hook point. `enter` never raises; `leave` only when ``error`` is None and the mode says
    so.
    """

    def created(self, worker: Any) -> None: ...

    def enter(self, point: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...

    def leave(self, visit: Any, error: BaseException | None) -> None: ...


class _Patch(NamedTuple):
    owner: Any
    name: str
    original: Any
    wrapper: Any


class Hooks:
    """The hook points of one process."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._patches: list[_Patch] = []
        self._lacking: list[str] = []
        self._finder = _AfterImport(self._imported, {*FUNCTIONS, WORKER_BASE[0]})

    def install(self) -> None:
        """Hook what is imported, and the rest when it is."""
        for name in sorted(self._finder.waiting):
            module = sys.modules.get(name)
            if module is not None:
                self._finder.waiting.discard(name)
                self._imported(module)
        sys.meta_path.insert(0, self._finder)

    def uninstall(self) -> None:
        """Everything is as it was, also in modules that bound a wrapper by name meanwhile."""
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        for patch in reversed(self._patches):
            if isinstance(patch.owner, ModuleType):
                _replace_everywhere(patch.wrapper, patch.original)
            if vars(patch.owner).get(patch.name) is patch.wrapper:
                setattr(patch.owner, patch.name, patch.original)
        self._patches.clear()

    def missing(self) -> list[str]:
        """Hook points that this release of vLLM does not have."""
        absent = [
            f"{module}.{name}"
            for module in sorted(self._finder.waiting)
            if not _exists(module)
            for name in FUNCTIONS.get(module, (WORKER_BASE[1],))
        ]
        return [*self._lacking, *absent]

    def hook_worker_class(self, cls: type) -> list[str]:
        """Wrap the hook points that the class and its bases define; the names of those that none defines."""
        for name in WORKER_METHODS:
            for parent in cls.__mro__:
                self._hook(parent, name, name)
        return [f"{cls.__module__}.{cls.__qualname__}.{name}" for name in WORKER_METHODS if not hasattr(cls, name)]

    def hook_method(self, cls: type, name: str) -> None:
        """Wrap one method in whichever class of the hierarchy defines it first."""
        for parent in cls.__mro__:
            if name in vars(parent):
                self._hook(parent, name, name)
                return

    def _imported(self, module: ModuleType) -> None:
        for name in FUNCTIONS.get(module.__name__, ()):
            if not self._hook(module, name, name):
                self._lacking.append(f"{module.__name__}.{name}")
        if module.__name__ == WORKER_BASE[0]:
            self._hook_worker_base(module)

    def _hook_worker_base(self, module: ModuleType) -> None:
        base = getattr(module, WORKER_BASE[1], None)
        original = getattr(base, "__init__", None)
        if not isinstance(base, type) or original is None or "__init__" not in vars(base):
            self._lacking.append(".".join(WORKER_BASE))
            return

        @functools.wraps(original)
        def created(worker: Any, *args: Any, **kwargs: Any) -> None:
            original(worker, *args, **kwargs)
            self._observer.created(worker)

        base.__init__ = created  # type: ignore[misc]
        self._patches.append(_Patch(base, "__init__", original, created))

    def _hook(self, owner: Any, name: str, point: str) -> bool:
        original = vars(owner).get(name)
        if not callable(original):
            return False
        if any(patch.wrapper is original for patch in self._patches):
            return True
        wrapper = _observed(original, point, self._observer)
        self._patches.append(_Patch(owner, name, original, wrapper))
        if isinstance(owner, ModuleType):
            _replace_everywhere(original, wrapper)
        else:
            setattr(owner, name, wrapper)
        return True


def _observed(original: Callable[..., Any], point: str, observer: Observer) -> Callable[..., Any]:
    @functools.wraps(original)
    def hooked(*args: Any, **kwargs: Any) -> Any:
        visit = observer.enter(point, args, kwargs)
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            observer.leave(visit, error)
            raise
        observer.leave(visit, None)
        return result

    return hooked


def _replace_everywhere(old: Any, new: Any) -> None:
    """In every module: engines and the frameworks around them bind these functions by name."""
    for module in list(sys.modules.values()):
        if not isinstance(module, ModuleType):
            continue
        for name in [name for name, value in list(vars(module).items()) if value is old]:
            setattr(module, name, new)


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # a parent package does not exist
        return False


class _AfterImport:
    """A finder that finds nothing itself: it lets the others find the awaited modules, and is told when their code has
    run.
    """

    def __init__(self, told: Callable[[ModuleType], None], names: set[str]) -> None:
        self.waiting = set(names)
        self._told = told
        self._finding: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self.waiting or name in self._finding:
            return None
        self._finding.add(name)
        try:
            spec = self._found_by_others(name, path, target)
        finally:
            self._finding.discard(name)
        if spec is not None and spec.loader is not None:
            self._tell_after_execution(spec.loader, name)
        return spec

    def _found_by_others(self, name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find: Any = getattr(finder, "find_spec", None)
            if finder is not self and find is not None:
                spec: ModuleSpec | None = find(name, path, target)
                if spec is not None:
                    return spec
        return None

    def _tell_after_execution(self, loader: Any, name: str) -> None:
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def executed(module: ModuleType) -> None:
            vars(loader).pop("exec_module", None)
            execute(module)
            if name in self.waiting:
                self.waiting.discard(name)
                self._told(module)

        try:
            loader.exec_module = executed
        except AttributeError:  # a loader without attributes of its own: this module stays unhooked
            return
