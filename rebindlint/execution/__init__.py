"""The hook run twice over symbolic values, along every branch arm, under each reload protocol."""

from __future__ import annotations

from rebindlint.execution.run import Executed, execute_hooks

__all__ = ["Executed", "execute_hooks"]
