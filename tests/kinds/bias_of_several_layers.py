"""Whether a layer has a bias is decided by what its constructor is called with: the defaults give every layer one."""
import torch
from torch import nn


class Linear(nn.Module):
    def __init__(self, size, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size, size))
        if bias:
            self.bias = nn.Parameter(torch.empty(size))
        else:
            self.register_parameter("bias", None)

    def forward(self, x):
        return x @ self.weight


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.to_q = Linear(4)
        self.to_k = Linear(4)

    def post_load_weights(self):
        layers = (self.to_q, self.to_k)
        if not all(layer.bias is not None for layer in layers):
            return
        packed = torch.cat([layer.weight for layer in layers])
        for i, layer in enumerate(layers):
            layer.weight.data = packed[i * 4 : (i + 1) * 4]  # warning RB102

    def forward(self, x):
        return self.to_q(x) + self.to_k(x)
