"""One cheap pass over a tree: imports, classes, hook roots, dialect; everything else when a call leads there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rebindlint.index.dialect import find_dialects, outside_dialect
from rebindlint.index.hooks import Hook, find_hooks
from rebindlint.index.lazy import find_lazy, lazy_hooks
from rebindlint.index.tree import Index, import_root

if TYPE_CHECKING:
    from rebindlint.config import Config
    from rebindlint.discover import Source

__all__ = ["Hook", "Index", "build_index", "find_hooks", "find_lazy", "lazy_hooks"]


def build_index(sources: Sequence[Source], config: Config) -> Index:
    """Reads every file once as bytes and parses none; unreadable files are left to whoever needs them."""
    index = Index(sources, config)
    imports_vllm: set[Path] = set()
    for source in sources:
        if source.text is not None:
            raw = source.text.encode("utf-8", "surrogatepass")
        else:
            try:
                raw = source.path.read_bytes()
            except OSError:
                continue
        index.bytes[source.shown] = raw
        if b"import vllm" in raw or b"from vllm" in raw:
            imports_vllm.add(import_root(source))
    index.dialects = find_dialects(index)
    own = [d for top, d in index.dialects.items() if top in ("vllm", "sglang")] or list(index.dialects.values())
    if own:
        index.dialect = own[0]
    elif imports_vllm:
        index.dialect = index.outside = outside_dialect(config.target_version)
    tops = {(import_root(source), source.module.split(".")[0]) for source in sources}
    contains = {top: {root for root, name in tops if name == top} for top in ("vllm", "sglang")}
    index.layerwise = frozenset(contains["vllm"] | (imports_vllm - contains["sglang"]))
    index.plugins = frozenset(imports_vllm - contains["vllm"] - contains["sglang"])
    return index
