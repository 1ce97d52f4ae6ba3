"""A constructor gives a part of itself another class: the methods of that one are called."""

import torch
from torch import nn


class Compressor(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4)

    def keep_norm(self) -> None:
        pass

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


class WideCompressor(Compressor):
    norm_copy: torch.Tensor

    def keep_norm(self) -> None:
        self.norm_copy = self.norm.weight.to(torch.float32).contiguous()  # error RB101

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.norm_copy


class QuietCompressor(Compressor):
    pass


class Indexer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.compressor = Compressor()


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.compressor = Compressor()
        self.indexer = Indexer()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.compressor(x) + self.indexer.compressor(x)


class WideAttention(Attention):
    def __init__(self) -> None:
        super().__init__()
        self.indexer.compressor.__class__ = WideCompressor
        self.compressor.__class__ = QuietCompressor

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        self.compressor.keep_norm()
        self.indexer.compressor.keep_norm()
