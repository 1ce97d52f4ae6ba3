"""Attention over a compressed cache: the up-projections are absorbed into queries and outputs."""

import torch
from torch import nn


class SinkImpl:
    """The backend: scores against the latent cache, with one learned sink a head."""

    def __init__(self, heads: int, sinks: torch.Tensor | None) -> None:
        self.heads = heads
        self.sinks = sinks

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        # The kernel wants its sinks in single precision.
        if self.sinks is not None and self.sinks.dtype != torch.float32:
            self.sinks = self.sinks.to(torch.float32)

    def forward(self, queries: torch.Tensor, latent: torch.Tensor) -> torch.Tensor:
        scores = torch.einsum("nbl,sl->nbs", queries, latent)
        if self.sinks is not None:
            column = self.sinks.view(-1, 1, 1).expand(-1, scores.shape[1], 1)
            scores = torch.cat([scores, column.to(scores.dtype)], dim=-1)
        weights = scores.softmax(dim=-1)[..., : latent.shape[0]]
        return torch.einsum("nbs,sl->nbl", weights, latent)


class LatentAttention(nn.Module):
    """Multi-head latent attention with the query and value up-projections absorbed at load time."""

    def __init__(self, heads: int, rank: int, head_dim: int) -> None:
        super().__init__()
        self.heads = heads
        self.rank = rank
        self.head_dim = head_dim
        self.kv_b_weight = nn.Parameter(
            torch.zeros(rank, heads * 2 * head_dim, dtype=torch.bfloat16), requires_grad=False
        )
        self.sinks = nn.Parameter(torch.zeros(heads, dtype=torch.bfloat16), requires_grad=False)
        self.impl = SinkImpl(heads, self.sinks)

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        weight = self.kv_b_weight.to(act_dtype).view(self.rank, self.heads, 2 * self.head_dim)
        W_UK, W_UV = weight.split([self.head_dim, self.head_dim], dim=-1)
        # (rank, heads, dim) -> (heads, rank, dim)
        self.W_UV = W_UV.transpose(0, 1)
        # (rank, heads, dim) -> (heads, dim, rank)
        self.W_UK_T = W_UK.permute(1, 2, 0)
        self.impl.process_weights_after_loading(act_dtype)

    def forward(self, queries: torch.Tensor, latent: torch.Tensor) -> torch.Tensor:
        absorbed = torch.bmm(queries.transpose(0, 1), self.W_UK_T)
        out = self.impl.forward(absorbed, latent)
        return torch.bmm(out, self.W_UV).transpose(0, 1)
