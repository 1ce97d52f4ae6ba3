"""The runtime half inside a running vLLM. Importing this package needs neither torch nor vllm.

`driver` starts an engine of its own and verifies one reload of it; `session` is what happens in each of its workers.
`plugin` is the way into somebody else's engine; `process` and `rank_watch` are what happens there.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rebindlint.runtime.vllm.worker_extension import WorkerExtension

__all__ = ["WorkerExtension"]


def __getattr__(name: str) -> Any:
    if name != "WorkerExtension":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = importlib.import_module(f"{__name__}.worker_extension").WorkerExtension
    globals()[name] = value
    return value
