"""The elements of a container are of the class that the constructor fills it with: their methods can be entered."""
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.kv = nn.Linear(4, 4)
        self.derived = None

    def fuse(self):
        self.derived = self.kv.weight.float() * 2  # error RB101

    def forward(self, x):
        return x @ self.derived


class Head(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.proj = nn.Linear(width, width)

    def fuse(self):
        self.by_row = self.proj.weight.float().sum(0)  # error RB101

    def forward(self, x):
        return x * self.by_row


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 4)

    def fuse(self):
        self.folded = self.up.weight.float().sum(1)  # error RB101

    def forward(self, x):
        return x * self.folded


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Linear(4, 4)

    def fuse(self):
        self.squared = self.scale.weight.float() ** 2  # error RB101

    def forward(self, x):
        return x * self.squared


def make_layers(count, factory):
    layers = nn.ModuleList([factory(i) for i in range(count)])
    return 0, count, layers


class Model(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(count)])
        self.start, self.end, self.heads = make_layers(count, lambda i: Head(i))
        self.experts = nn.ModuleDict({str(i): self._expert() for i in range(count)})
        norms = []
        for _ in range(count):
            norms.append(Norm())
        self.norms = norms

    def _expert(self) -> Expert:
        return Expert()

    def post_load_weights(self):
        for block in self.blocks:
            block.fuse()
        for head in self.heads:
            head.fuse()
        for expert in self.experts.values():
            expert.fuse()
        for norm in list(self.norms):
            norm.fuse()

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
