import torch
from torch import nn
from torch.nn import Parameter
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = Parameter(torch.ones(8))
        object.__setattr__(self, "_w", None)
    def precompute(self):
        object.__setattr__(self, "_w", (self.weight + 1.0).detach())  # error RB101
    def forward(self, x):
        return x * self._w
    def post_load_weights(self):
        self.precompute()
