"""One decode step of the running engine, frozen: its inputs and its forward context, to be run again at will."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from rebindlint.model import RebindlintError

__all__ = ["FrozenStep", "StepTap"]


@dataclass(frozen=True, slots=True)
class FrozenStep:
    """The model's last forward pass. Slots in the caches are written anew by every run, so that runs repeat
    themselves.

    ``layers`` are the attention and expert layers that operators look up by name, None for those of the live model.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    context: Any
    config: Any
    layers: dict[str, Any] | None = None

    def __call__(self, model: torch.nn.Module) -> Any:
        with self.entered():
            return model(*self.args, **self.kwargs)

    def logits(self, model: torch.nn.Module, result: Any) -> Any:
        """What the engine computes from the result outside the step; None where the model gives no logits."""
        compute = getattr(model, "compute_logits", None)
        hidden = result[0] if isinstance(result, tuple) else result
        if compute is None or not isinstance(hidden, torch.Tensor):
            return None
        with self.entered():
            return compute(hidden)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        from vllm.config import set_current_vllm_config
        from vllm.forward_context import override_forward_context

        context = copy.copy(self.context)  # a run counts expert layers in it
        if hasattr(context, "moe_layer_index"):
            context.moe_layer_index = 0
        if self.layers is not None:
            context.no_compile_layers = self.layers
        with torch.inference_mode(), set_current_vllm_config(self.config), override_forward_context(context):
            yield

    def inputs(self) -> dict[str, object]:
        """What the step takes beside the model, as roots of a census."""
        metadata = {key: value for key, value in vars(self.context).items() if key != "no_compile_layers"}
        return {"inputs": {"args": self.args, **self.kwargs}, "metadata": metadata}


class StepTap:
    """Listens to a model's forward passes and keeps the last one."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._last: tuple[tuple[Any, ...], dict[str, Any], Any] | None = None
        self._handle = model.register_forward_pre_hook(self._note, with_kwargs=True)

    def _note(self, _module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        from vllm.forward_context import get_forward_context, is_forward_context_available

        if is_forward_context_available():
            self._last = (args, dict(kwargs), copy.copy(get_forward_context()))

    def frozen(self, config: Any) -> FrozenStep:
        """Stop listening. Raises RebindlintError when no forward pass was seen."""
        self._handle.remove()
        if self._last is None:
            raise RebindlintError("the engine generated tokens without a forward pass of its model that could be seen")
        args, kwargs, context = self._last
        return FrozenStep(args, kwargs, context, config)
