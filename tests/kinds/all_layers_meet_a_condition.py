"""``all`` over layers asks no layer behind the first that does not meet the condition."""
import torch
from torch import nn
from torch.nn import Parameter


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.first = config.linear()
        self.second = config.linear()
        self.third = config.linear()
        self._fused = None

    def can_fuse(self):
        layers = (self.first, self.second, self.third)
        return all(
            getattr(layer, "config", None) is None and hasattr(layer, "weight") and layer.weight is not None
            for layer in layers
        )

    def fuse_weights(self):
        if not self.can_fuse():
            return
        if self._fused is not None:  # error RB204
            return
        self._fused = Parameter(torch.cat([self.first.weight, self.second.weight, self.third.weight]))

    def forward(self, x):
        return x @ self._fused


class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.block = Block(config)

    def load_weights(self, weights):
        self.block.fuse_weights()
