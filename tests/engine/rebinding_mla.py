"""Runs ``rebindlint`` in an engine whose latent attention binds new tensors in every run of its hook.

Released engines did so up to 0.25.1 when the projection was quantised; later ones write into what is there.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from vllm.model_executor.layers.attention import mla_attention

_REBOUND = ("W_UV", "W_UK_T")


def bind_anew(layer: torch.nn.Module, name: str, tensor: torch.Tensor, **_: Any) -> None:
    """In place of the engine's helper that copies into the tensor that is there."""
    if name not in _REBOUND:
        raise AssertionError(f"the engine's hook sets {name} as well: this stand-in has to follow it")
    setattr(layer, name, tensor.contiguous().clone())


mla_attention.replace_parameter = bind_anew  # here, so that it holds in the engine's own process as well

if __name__ == "__main__":
    from rebindlint.cli import main

    sys.argv[0] = "rebindlint"
    main()
