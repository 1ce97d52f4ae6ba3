"""A step as users write it: a callable without arguments, or one that takes the model."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

import torch

from rebindlint.model import RebindlintError

__all__ = ["BoundStep", "Step"]

Step = Callable[[], Any] | Callable[[torch.nn.Module], Any]


class BoundStep:
    """Raises RebindlintError when the step needs more than one argument."""

    def __init__(self, step: Step) -> None:
        self.step: Any = step
        self.takes_model = _needed_arguments(step) == 1

    def on(self, model: torch.nn.Module) -> Callable[[], Any]:
        """The step without arguments, on that model if it takes one."""
        run: Callable[[], Any] = functools.partial(self.step, model) if self.takes_model else self.step
        return run

    @property
    def on_any(self) -> Callable[[torch.nn.Module], Any] | None:
        """The step as a function of the model; None when it is bound to one."""
        function: Callable[[torch.nn.Module], Any] | None = self.step if self.takes_model else None
        return function

    def roots(self) -> dict[str, object]:
        """What a census needs to give names to the step's inputs: the step itself, and tensors (or containers that
        may hold some) that it reads from the globals of its module. Globals of other functions would lead to
        everything in the process.
        """
        found: dict[str, object] = {"step": self.step}
        function = self.step.func if isinstance(self.step, functools.partial) else self.step
        function = getattr(function, "__func__", function)
        codes = [function.__code__] if isinstance(function, types.FunctionType) else []
        while codes:
            code = codes.pop()
            codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
            for name in code.co_names:
                value = function.__globals__.get(name)
                if isinstance(value, (torch.Tensor, dict, list, tuple)):
                    found[f"step.<global {name}>"] = value
        return found


def _needed_arguments(step: Step) -> int:
    try:
        parameters = inspect.signature(step).parameters.values()
    except (TypeError, ValueError):  # builtins without a signature
        return 0
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = sum(p.default is p.empty and p.kind in positional for p in parameters)
    if needed > 1:
        raise RebindlintError(f"a step takes nothing or the model, not {needed} arguments")
    return needed
