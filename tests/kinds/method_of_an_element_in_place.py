"""Elements whose methods refresh what they derived in place, or derive nothing from weights."""
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.kv = nn.Linear(4, 4)
        self.derived = None
        self.fused = False

    def process_weights_after_loading(self):
        value = self.kv.weight.float() * 2
        if self.derived is None:
            self.derived = nn.Parameter(value)
        else:
            self.derived.data.copy_(value)
        self.fused = True

    def forward(self, x):
        return x @ self.derived if self.fused else x


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.kv = nn.Linear(4, 4)
        self.checked = False

    def fuse(self):
        self.checked = bool(torch.isfinite(self.kv.weight).all().item())

    def forward(self, x):
        return x @ self.kv.weight if self.checked else x


class Model(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.layers = nn.ModuleList([Plain() for _ in range(count)])
        self.blocks = nn.ModuleList([Block() for _ in range(count)])

    def load_weights(self, weights):
        for name, weight in weights:
            self.get_parameter(name).data.copy_(weight)
        self.process_weights_after_loading()

    def process_weights_after_loading(self):
        for layer in self.layers:
            layer.fuse()
        for block in self.blocks:
            block.process_weights_after_loading()

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
