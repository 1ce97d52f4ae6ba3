"""One of several targets of an assignment is bound there, not read."""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(4, 4)

    def special_tokens(self):
        (
            self.start,
            self.stop,
            self.pad,  # the last of them
        ) = torch.cat([self.embedding.weight, self.embedding.weight]).chunk(3)
        self.every = torch.cat([self.embedding.weight])  # error RB101
        self.left, self.right = self.every.chunk(2)  # error RB101

    def forward(self, x):
        return combine(
            x,
            self.every,
            self.right,
            left=self.left,
        )

    def load_weights(self, weights):
        for name, weight in weights:
            self.embedding.weight.data.copy_(weight)
        self.special_tokens()
