"""A second model in the engine's process, loaded from the checkpoint that the live model was reloaded from."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from rebindlint.runtime.vllm.step import FrozenStep

__all__ = ["FreshModel", "load_fresh", "load_model"]


class FreshModel(NamedTuple):
    """``layers`` are its attention and expert layers, which operators look up by name."""

    model: torch.nn.Module
    config: Any
    layers: dict[str, Any]


def load_fresh(config: Any, checkpoint: str, step: FrozenStep) -> tuple[torch.nn.Module, Callable[[], Any]]:
    """The new model, and the frozen step on it. Raises as `load_model`."""
    fresh = load_model(config, checkpoint)
    return fresh.model, functools.partial(
        dataclasses.replace(step, config=fresh.config, layers=fresh.layers), fresh.model
    )


def load_model(config: Any, checkpoint: str) -> FreshModel:
    """The caches are shared with the live model: run one at a time.

    Raises what loading raises: out of memory, most likely.
    """
    from vllm.config import set_current_vllm_config
    from vllm.model_executor.model_loader import get_model

    fresh_config = _config_for(config, checkpoint)
    with set_current_vllm_config(fresh_config):
        model = get_model(vllm_config=fresh_config)
    layers = fresh_config.compilation_config.static_forward_context
    for name, layer in layers.items():
        live = config.compilation_config.static_forward_context.get(name)
        if live is not None:
            _take_over(live, layer)
    return FreshModel(model, fresh_config, layers)


def _config_for(config: Any, checkpoint: str) -> Any:
    """The engine's configuration without the layers that are registered in it, for another checkpoint."""
    fresh = copy.copy(config)
    fresh.model_config = copy.copy(config.model_config)
    fresh.model_config.model = checkpoint
    if getattr(config.load_config, "load_format", "") == "dummy":  # weights came from a trainer until now
        fresh.load_config = copy.copy(config.load_config)
        fresh.load_config.load_format = "auto"
    fresh.compilation_config = copy.copy(config.compilation_config)
    fresh.compilation_config.static_forward_context = {}
    if hasattr(config.compilation_config, "static_all_moe_layers"):
        fresh.compilation_config.static_all_moe_layers = []
    return fresh


def _take_over(live: Any, fresh: Any) -> None:
    """What the engine gives its layers after loading: the caches, and attributes that a new layer does not have."""
    if hasattr(live, "kv_cache"):
        fresh.kv_cache = live.kv_cache
    for old, new in ((live, fresh), (getattr(live, "impl", None), getattr(fresh, "impl", None))):
        if old is None or new is None or not hasattr(old, "__dict__"):
            continue
        for name, value in vars(old).items():
            if name not in vars(new):
                vars(new)[name] = value
