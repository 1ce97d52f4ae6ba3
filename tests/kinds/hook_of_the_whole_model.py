"""A layerwise reload does not call it again: what it derived is stale there, and rebound by a direct reload."""
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.kv = nn.Linear(4, 4)

    def forward(self, x):
        return x @ self.w_kc * self.table


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()

    def forward(self, x):
        return self.attention(x)

    def process_weights_after_loading(self):
        self.attention.w_kc = self.attention.kv.weight.float() * 2  # error RB101
        self.attention.table = torch.arange(4, device="cuda") * 2  # warning RB101
