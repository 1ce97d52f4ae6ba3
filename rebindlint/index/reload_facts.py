"""How the engine in the tree reloads weights layer by layer, as its own source says."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from rebindlint.index.modules import Assigned, Defined, descend

if TYPE_CHECKING:
    from rebindlint.index.tree import Index

__all__ = ["kept_live", "leaves_drafts", "leaves_unsaved", "restores_over_plain"]


def kept_live(index: Index) -> frozenset[str]:
    """Names of tensors that the tree's own layerwise reload neither replaces before the hook nor puts back after it."""
    names: set[str] = set()
    for name in index.sources:
        module = index.module(name) if name.endswith("model_loader.reload.meta") else None
        for entry in module.names.items() if module is not None else ():
            if entry[0].startswith("SKIP_") and entry[0].endswith("TENSORS") and isinstance(entry[1], Assigned):
                strings = (n.value for n in descend(entry[1].value) if isinstance(n, ast.Constant))
                names |= {text for text in strings if isinstance(text, str)}
    return frozenset(names)


def restores_over_plain(index: Index) -> bool:
    """Whether the tree's own layerwise reload first deletes whatever stands under the name of a parameter that it restores."""
    for name in index.sources:
        module = index.module(name) if name.endswith("model_loader.reload.meta") else None
        entry = module.names.get("restore_layer_on_meta") if module is not None else None
        if isinstance(entry, Defined):
            return any(isinstance(n, ast.Name) and n.id == "hasattr" for n in descend(entry.node))
    return False


def leaves_unsaved(index: Index) -> bool:
    """Whether the tree's own layerwise reload puts buffers that are not persistent back without refreshing them."""
    return any(
        b"non_persistent" in index.bytes.get(source.shown, b"")
        for name, source in index.sources.items()
        if name.endswith("model_loader.reload.layerwise")
    )


def leaves_drafts(index: Index) -> bool:
    """Whether the engine in the tree reloads a model without the draft models beside it."""
    reloads = any(name.endswith("model_loader.reload.layerwise") for name in index.sources)
    return reloads and not any(b"draft_weight_update" in raw for raw in index.bytes.values())
