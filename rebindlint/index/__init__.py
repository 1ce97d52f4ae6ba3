"""One cheap pass over a tree: imports, classes, hook roots, dialect; everything else when a call leads there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rebindlint.index.dialect import find_dialects, outside_dialect
from rebindlint.index.hooks import Hook, find_hooks
from rebindlint.index.tree import Index
from rebindlint.model import Protocol

if TYPE_CHECKING:
    from rebindlint.config import Config
    from rebindlint.discover import Source

__all__ = ["Hook", "Index", "build_index", "find_hooks"]


def build_index(sources: Sequence[Source], config: Config) -> Index:
    """Reads every file once as bytes and parses none; unreadable files are left to whoever needs them."""
    index = Index(sources, config)
    imports_vllm = False
    for source in sources:
        if source.text is not None:
            raw = source.text.encode("utf-8", "surrogatepass")
        else:
            try:
                raw = source.path.read_bytes()
            except OSError:
                continue
        index.bytes[source.shown] = raw
        imports_vllm = imports_vllm or b"import vllm" in raw or b"from vllm" in raw
    index.dialects = find_dialects(index)
    own = [d for top, d in index.dialects.items() if top in ("vllm", "sglang")] or list(index.dialects.values())
    if own:
        index.dialect = own[0]
    elif imports_vllm:
        index.dialect = outside_dialect(config.target_version)
    tops = {source.module.split(".")[0] for source in sources}
    index.protocol = (
        Protocol.LAYERWISE if "vllm" in tops or (imports_vllm and "sglang" not in tops) else Protocol.DIRECT
    )
    return index
