"""The index of a tree in which a few files read otherwise, made from the index of the tree as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rebindlint.index import Index
from rebindlint.index.classes import ClassInfo, FunctionInfo
from rebindlint.index.hooks import Hook
from rebindlint.model import RebindlintError

__all__ = ["function_in", "hook_in", "overlaid"]


def overlaid(base: Index, texts: Mapping[str, str]) -> Index:
    """An index like ``base`` but for ``texts`` (by module). Syntax trees of the other files are shared; what was
    resolved through them is worked out again, because it may lead to a file that changed."""
    sources = [replace(s, text=texts[s.module]) if s.module in texts else s for s in base.sources.values()]
    index = Index(sources, base.config)
    index.bytes = dict(base.bytes)
    for name, text in texts.items():
        index.bytes[base.sources[name].shown] = text.encode("utf-8", "surrogatepass")
    own = {"sources", "by_shown", "bytes", "failures", "readers", "pure", "lasting", "results", "roots", "helpers"}
    # what is known by the identities of nodes: those of the changed files die with this index, and are given away again
    own |= {"shapes", "binding_statements"}
    for name, value in vars(base).items():  # what was found out about the tree as a whole: dialects, protocols
        if not name.startswith("_") and name not in own:
            setattr(index, name, value)
    index._modules = {name: module for name, module in base._modules.items() if name not in texts}
    # Mutants add no class with a base and take none away.
    index._subclass_lines = base._subclass_index()
    return index


def hook_in(index: Index, hook: Hook) -> Hook:
    """The hook of the unchanged tree as it stands in ``index``. Raises RebindlintError when it is not there."""
    function = function_in(index, hook.function)
    return replace(hook, function=function, receiver=function.owner)


def function_in(index: Index, function: FunctionInfo) -> FunctionInfo:
    module = index.module(function.module.name)
    if module is None:
        raise RebindlintError(f"{function.module.shown}: {index.failures.get(function.module.shown)}")
    found: FunctionInfo | None = None
    if function.owner is None:
        entry = index.resolve(module, function.name)
        found = entry if isinstance(entry, FunctionInfo) else None
    else:
        owner = _class_in(index, function.owner)
        found = owner.methods.get(function.name) if owner is not None else None
    if found is None:
        raise RebindlintError(f"{function.module.shown}: {function.qualified} is gone")
    return found


def _class_in(index: Index, info: ClassInfo) -> ClassInfo | None:
    module = index.module(info.module.name)
    same = [c for c in index.classes_of(module) if c.name == info.name] if module is not None else []
    return min(same, key=lambda c: abs(c.node.lineno - info.node.lineno), default=None)
