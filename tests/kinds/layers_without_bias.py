"""Layers that are constructed without a bias have none: what asks for one is not reached."""
import torch
from torch import nn


class Linear(nn.Module):
    def __init__(self, size, bias=True, skip=False):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size, size))
        self.skip = skip
        if bias:
            self.bias = nn.Parameter(torch.empty(size))
        else:
            self.register_parameter("bias", None)

    def forward(self, x):
        return x @ self.weight


class Column(Linear):
    def __init__(self, size, bias=True):
        super().__init__(size, bias=bias)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.to_q = Column(4, bias=False)
        self.to_k = Column(4, False)

    def post_load_weights(self):
        layers = (self.to_q, self.to_k)
        if not all(layer.bias is not None for layer in layers) and not self.to_q.skip:
            return
        packed = torch.cat([layer.weight for layer in layers])
        for i, layer in enumerate(layers):
            layer.weight.data = packed[i * 4 : (i + 1) * 4]

    def forward(self, x):
        return self.to_q(x) + self.to_k(x)
