"""A class attribute of the base says None; below the base a constructor sets it. What is annotated with the base may be either."""
import torch
from torch import nn


class Config:
    block_size: list[int] | None = None


class BlockConfig(Config):
    def __init__(self, block_size):
        self.block_size = block_size


class Model(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.proj = nn.Linear(4, 4)
        self.scale = None

    def post_load_weights(self):
        if self.config.block_size is not None:
            self.scale = self.proj.weight.abs().max()  # error RB101

    def forward(self, x):
        return self.proj(x) * self.scale
