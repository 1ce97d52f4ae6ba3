"""Of three classes that bind an attribute of the same name, one reads it, and one below another does."""
import torch
from torch import nn


class Read(nn.Module):
    def load_weights(self, weights):
        load(self, weights)
        self.stacked = torch.stack([head.weight for head in self.heads])  # error RB101

    def forward(self, x):
        return x @ self.stacked


class Unread(nn.Module):
    def load_weights(self, weights):
        load(self, weights)
        self.stacked = torch.stack([head.weight for head in self.heads])

    def forward(self, x):
        return x


class Base(nn.Module):
    def load_weights(self, weights):
        load(self, weights)
        self.stacked = torch.stack([head.weight for head in self.heads])  # error RB101


class Below(Base):
    def forward(self, x):
        return x @ self.stacked
