"""Which hooks may come to a file: their text says whom they call, without executing anything.

Followed are names through imports, methods of a hook's own class and of classes that are named, and attributes by their name
alone where few functions have it. That is less than an execution follows: who finds nothing this way has to ask every hook.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field

from rebindlint.config import Config
from rebindlint.execution.parallel import for_each
from rebindlint.execution.run import (
    Executed,
    HookExecuted,
    Watch,
    combine,
    execute_hook,
    execute_lazy,
    protocols_of,
    without_called,
)
from rebindlint.index import Hook, Index, find_hooks, find_lazy, lazy_hooks
from rebindlint.index.classes import ClassInfo, FunctionInfo
from rebindlint.index.hooks import POST_LOAD
from rebindlint.index.modules import Module, descend, imported_names
from rebindlint.model import Rebinding

__all__ = ["execute_concerned", "facts_in", "functions_at", "hooks_concerned"]

_FEW = 3  # functions of one name
_DEFINED = re.compile(rb"def (\w+)\(")
_MADE = ("__init__", "__post_init__", "__new__")  # run when a class is named in a call


@dataclass(slots=True)
class _Text:
    """What a function names: ``names`` of any kind, ``attributes`` of objects that nothing is known about, methods of ``super()``."""

    names: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    inherited: set[str] = field(default_factory=set)
    imports: list[ast.stmt] = field(default_factory=list)


def execute_concerned(
    index: Index,
    config: Config,
    wanted: Callable[[Sequence[Hook]], Iterable[FunctionInfo]],
    *,
    jobs: int = 0,
    progress: Callable[[int, int], None] | None = None,
    watch: Callable[[], Watch] | None = None,
) -> list[HookExecuted]:
    """As ``execute_each``, for the hooks that are, or may call, one of the functions that ``wanted`` chooses; only those are watched."""
    hooks = find_hooks(index, config.hooks)
    index.roots = {id(hook.function.node): number for number, hook in enumerate(hooks)}
    functions = list(wanted(hooks))
    nodes = {id(info.node) for info in functions}
    chosen = sorted(hooks_concerned(index, hooks, functions))

    def one(position: int) -> tuple[Executed, Watch | None]:
        hook = hooks[chosen[position]]
        watching = watch() if watch is not None and id(hook.function.node) in nodes else None
        return execute_hook(index, hook, protocols_of(config), watching), watching

    results = dict(zip(chosen, for_each(len(chosen), one, jobs=jobs, progress=progress), strict=True))
    executed = [results[number][0] if number in results else Executed(()) for number in range(len(hooks))]
    kept = without_called(index, hooks, executed)
    return [
        HookExecuted(hooks[number], kept[number], kept[number] is not executed[number], results[number][1])
        for number in chosen
    ]


def functions_at(index: Index, shown: str, row: int) -> list[FunctionInfo]:
    """The function of the file, or the method of one of its classes, around a line."""
    source = index.by_shown.get(shown)
    module = index.module(source.module) if source is not None else None
    if module is None:
        return []
    found = [info for cls in index.classes_of(module) for info in cls.methods.values()]
    found += [index.function_info(module, n) for n in module.tree.body if isinstance(n, ast.FunctionDef)]
    return [info for info in found if info.node.lineno <= row <= (info.node.end_lineno or info.node.lineno)]


def facts_in(
    index: Index,
    config: Config,
    functions: Sequence[FunctionInfo],
    *,
    jobs: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> list[Rebinding]:
    """What the hooks that may come to the functions, and the lazy caches in them, do in the files of the functions."""
    every = execute_concerned(index, config, lambda hooks: functions, jobs=jobs, progress=progress)
    results = [one.executed for one in every]
    modules = {info.module.name for info in functions}
    rows = {(info.module.shown, info.node.lineno) for info in functions}
    for place in find_lazy(index):
        if place[0] in modules:
            lazy = [h for h in lazy_hooks(index, place) if (h.function.module.shown, h.function.node.lineno) in rows]
            results += execute_lazy(index, lazy)
    files = {info.module.shown for info in functions}
    facts: dict[tuple[object, ...], Rebinding] = {}
    for fact in (fact for result in results for fact in result.facts if fact.statement.filename in files):
        known = facts.get(fact.key)
        facts[fact.key] = fact if known is None else combine(known, fact)
    return list(facts.values())


def hooks_concerned(index: Index, hooks: Sequence[Hook], functions: Iterable[FunctionInfo]) -> frozenset[int]:
    """The numbers of the hooks that are among the functions, or may call one of them.

    By their name alone most hooks could call each other; so a call of ``process_weights_after_loading`` on an object of which nothing is known
    does not count.
    """
    nodes = {id(info.node): info.name for info in functions}
    names = _telling(index, set(nodes.values()))
    reach = _Reach(index)
    return frozenset(number for number, hook in enumerate(hooks) if reach.comes_to(hook, nodes.keys(), names))


def _telling(index: Index, names: set[str]) -> set[str]:
    """The names by which an attribute is likely one of the functions; a name that many classes share says nothing."""
    defined = Counter(name for raw in index.bytes.values() for name in _DEFINED.findall(raw))
    return {n for n in names - POST_LOAD if not n.startswith("__") and defined[n.encode()] <= _FEW}


class _Reach:
    """The functions that a hook may come to; what a function names is looked up once for all hooks."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._texts: dict[int, _Text] = {}
        self._called: dict[int, tuple[FunctionInfo, ...]] = {}

    def comes_to(self, hook: Hook, functions: Set[int], names: set[str]) -> bool:
        """Whether it may call one of the ``functions`` (by the identity of their nodes), or a method that has one of the ``names``."""
        own = hook.receiver.methods if hook.receiver is not None else {}
        seen: set[int] = set()
        queue = [hook.function]
        while queue:
            info = queue.pop()
            if id(info.node) in seen:
                continue
            seen.add(id(info.node))
            text = self._text(info)
            if id(info.node) in functions or not text.attributes.isdisjoint(names):
                return True
            queue += self._functions_named(info)
            queue += [
                own[name] for name in text.names & own.keys() - POST_LOAD
            ]  # what a base calls and the class defines
        return False

    def _text(self, info: FunctionInfo) -> _Text:
        found = self._texts.get(id(info.node))
        if found is None:
            found = self._texts[id(info.node)] = _read(info.node)
        return found

    def _functions_named(self, info: FunctionInfo) -> tuple[FunctionInfo, ...]:
        found = self._called.get(id(info.node))
        if found is None:
            found = self._called[id(info.node)] = tuple(self._look_up(info, self._text(info)))
        return found

    def _look_up(self, info: FunctionInfo, text: _Text) -> Iterator[FunctionInfo]:
        for name in sorted(text.names - POST_LOAD):
            yield from self._of(self._index.resolve(info.module, name), text)
            if info.owner is not None:
                yield from _method(self._index, info.owner, name)
        for base in self._index.mro(info.owner)[1:] if info.owner is not None else ():
            yield from (base.methods[name] for name in sorted(text.inherited & base.methods.keys()))
        for node in text.imports:
            for _, imported in imported_names(node, info.module.name, info.module.is_package):
                yield from self._of(self._index.imported(imported), text)

    def _of(self, found: object, text: _Text) -> Iterator[FunctionInfo]:
        """A function, or what of a class or module may run when the text names it."""
        if isinstance(found, FunctionInfo):
            yield found
        elif isinstance(found, ClassInfo):
            for name in (*_MADE, *sorted(text.names)):
                yield from _method(self._index, found, name)
        elif isinstance(found, Module):
            for name in sorted(text.names & found.names.keys()):
                inner = self._index.resolve(found, name)
                if not isinstance(inner, Module):
                    yield from self._of(inner, text)


def _method(index: Index, cls: ClassInfo, name: str) -> Iterator[FunctionInfo]:
    method = index.method(cls, name)
    if method is not None:
        yield method


def _read(node: ast.AST) -> _Text:
    text = _Text()
    for inner in descend(node):
        if isinstance(inner, ast.Name):
            text.names.add(inner.id)
        elif isinstance(inner, ast.Attribute):
            if (
                isinstance(inner.value, ast.Call)
                and isinstance(inner.value.func, ast.Name)
                and inner.value.func.id == "super"
            ):
                text.inherited.add(inner.attr)
            else:
                text.attributes.add(inner.attr)
                text.names.add(inner.attr)
        elif isinstance(inner, ast.Constant) and isinstance(inner.value, str) and inner.value.isidentifier():
            text.names.add(inner.value)  # for getattr, or the key of a table
        elif isinstance(inner, ast.Import | ast.ImportFrom):
            text.imports.append(inner)
    return text
