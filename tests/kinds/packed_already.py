"""Tensors that are packed into one storage, unless they lie there one behind the other already: after the first run they do."""
import torch
from torch import nn


def _stacked(a, b):
    if not (
        a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
        and b.storage_offset() == a.storage_offset() + a.numel()
    ):
        return None
    return a.as_strided((2 * a.shape[0], a.shape[1]), (a.shape[1], 1))


class Linear(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size, size))

    def forward(self, x):
        return x @ self.weight


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = Linear(4)
        self.up = Linear(4)

    def post_load_weights(self):
        if _stacked(self.gate.weight, self.up.weight) is not None:
            return
        rows = self.gate.weight.shape[0]
        packed = torch.cat([self.gate.weight.data, self.up.weight.data])
        self.gate.weight.data, self.up.weight.data = packed[:rows], packed[rows:]

    def forward(self, x):
        return self.gate(x) + self.up(x)


class Always(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = Linear(4)
        self.up = Linear(4)

    def post_load_weights(self):
        rows = self.gate.weight.shape[0]
        packed = torch.cat([self.gate.weight.data, self.up.weight.data])
        self.gate.weight.data, self.up.weight.data = packed[:rows], packed[rows:]  # warning RB102

    def forward(self, x):
        return self.gate(x) + self.up(x)
