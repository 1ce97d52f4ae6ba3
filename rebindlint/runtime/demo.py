"""A small model to see the whole thing on: latent attention whose post-load hook derives two weights from a loaded one.

In the guilty variant the hook binds new tensors at every load, in the fixed one it writes into those that are there.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from rebindlint.runtime.case import Case, verify_case
from rebindlint.runtime.devices import chosen_device
from rebindlint.runtime.report import Report

__all__ = ["LatentAttention", "SafeLatentAttention", "fixed_case", "guilty_case", "run_demo"]

_HEADS, _SIZE, _RANK, _TOKENS = 2, 4, 8, 3


class LatentAttention(nn.Module):
    """Queries are taken into the latent space by ``w_uk_t``, values out of it by ``w_uv``: both halves of
    ``kv_b_proj``.
    """

    def __init__(self, device: str) -> None:
        super().__init__()
        self.kv_b_proj = nn.Linear(_RANK, _HEADS * 2 * _SIZE, bias=False, device=device)

    def process_weights_after_loading(self) -> None:
        w_uk, w_uv = self.halves()
        self.w_uk_t = w_uk.contiguous()
        self.w_uv = w_uv.transpose(1, 2).contiguous()

    def halves(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Both [heads, size, rank]."""
        weight = self.kv_b_proj.weight.detach().view(_HEADS, 2, _SIZE, _RANK)
        return weight[:, 0], weight[:, 1]

    def forward(self, query: torch.Tensor, latent: torch.Tensor) -> torch.Tensor:
        scores = torch.bmm(query, self.w_uk_t) @ latent.transpose(0, 1)
        return torch.bmm(scores.softmax(-1) @ latent, self.w_uv)


class SafeLatentAttention(LatentAttention):
    """Binds once, then copies: what a graph holds stays where it is."""

    def process_weights_after_loading(self) -> None:
        w_uk, w_uv = self.halves()
        if not hasattr(self, "w_uk_t"):
            self.w_uk_t = w_uk.contiguous()
            self.w_uv = w_uv.transpose(1, 2).contiguous()
        else:
            self.w_uk_t.copy_(w_uk)
            self.w_uv.copy_(w_uv.transpose(1, 2))


def guilty_case(device: str = "cpu") -> Case:
    return _case(LatentAttention, device)


def fixed_case(device: str = "cpu") -> Case:
    return _case(SafeLatentAttention, device)


def _weights(seed: int, device: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(_HEADS * 2 * _SIZE, _RANK, generator=generator).to(device)


def _case(make: Callable[[str], LatentAttention], device: str) -> Case:
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(_HEADS, _TOKENS, _SIZE, generator=generator).to(device)
    latent = torch.randn(_TOKENS, _RANK, generator=generator).to(device)

    def load(model: LatentAttention, seed: int) -> LatentAttention:
        with torch.no_grad():
            model.kv_b_proj.weight.copy_(_weights(seed, device))
        model.process_weights_after_loading()
        return model

    model = load(make(device), seed=1)
    return Case(
        model,
        step=lambda model: model(query, latent),
        reload=lambda: load(model, seed=2),
        fresh=lambda: load(make(device), seed=2),
        updates=("kv_b_proj.weight", "w_uk_t", "w_uv"),
    )


def run_demo(device: str = "auto") -> tuple[Report, Report]:
    """The guilty model's report, then the fixed one's."""
    wanted = chosen_device(device)
    return verify_case(guilty_case(wanted), device=device), verify_case(fixed_case(wanted), device=device)
