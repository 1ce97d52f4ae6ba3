"""What each rank's process has other than an engine that nobody verifies: imported there before the model is built,
because vLLM imports the module of a worker extension then. Ranks are started anew, so that nothing that the driver
changed in its own process reaches them.
"""

from __future__ import annotations

import contextlib
import os
from typing import Final

from rebindlint.runtime.vllm.engine import PLAIN_LINEARS, plain_linears, without_amx

__all__ = ["RankSetup"]

_FOR_GOOD: Final = contextlib.ExitStack()  # a rank's process ends with its engine


class RankSetup:
    """Adds nothing to the worker."""


_FOR_GOOD.enter_context(without_amx())
if os.environ.get(PLAIN_LINEARS):
    _FOR_GOOD.enter_context(plain_linears())
