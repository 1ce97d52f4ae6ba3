"""The runtime half: the four moments of a reload on live tensors. Importing it needs no torch; using it does.

```python
from rebindlint.runtime import Guard, assert_reload_safe
```
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rebindlint.runtime.case import Case, run_case
    from rebindlint.runtime.census import Census, Limits, take_census
    from rebindlint.runtime.codes import Code, codes, page
    from rebindlint.runtime.compare import Tolerance
    from rebindlint.runtime.findings import Comparison, Finding, Reader, StorageState
    from rebindlint.runtime.guard import Guard, assert_reload_safe
    from rebindlint.runtime.report import Report

__all__ = [
    "Case", "Census", "Code", "Comparison", "Finding", "Guard", "Limits", "Reader", "Report", "StorageState", "Tolerance",
    "assert_reload_safe", "codes", "page", "run_case", "take_census", "torch_is_missing",
]  # fmt: skip

TORCH_IS_MISSING: Final = "the runtime half needs torch: pip install 'rebindlint[runtime]'"

_HOME: Final = {
    "Case": "case",
    "Census": "census",
    "Code": "codes",
    "Comparison": "findings",
    "Finding": "findings",
    "Guard": "guard",
    "Limits": "census",
    "Reader": "findings",
    "Report": "report",
    "StorageState": "findings",
    "Tolerance": "compare",
    "assert_reload_safe": "guard",
    "codes": "codes",
    "page": "codes",
    "run_case": "case",
    "take_census": "census",
}
_TORCH_FREE: Final = frozenset({"codes", "findings", "report"})


def torch_is_missing() -> bool:
    return importlib.util.find_spec("torch") is None


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if _HOME[name] not in _TORCH_FREE and torch_is_missing():
        raise ImportError(TORCH_IS_MISSING)
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
