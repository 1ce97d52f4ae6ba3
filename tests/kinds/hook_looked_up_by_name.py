"""What loading looks up on a layer by a literal name and calls is a hook; what it leads to on a reload is judged."""
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, order):
        super().__init__()
        self.proj = nn.Linear(4, 4, bias=False)
        self.order = order
        self.ready = False

    def finalize_loaded(self):
        if self.ready:  # error RB204
            return
        columns = torch.argsort(self.order).to(self.proj.weight.device)
        self.proj.weight.data.copy_(self.proj.weight.data[:, columns])
        self.ready = True

    def forward(self, x):
        return x @ self.proj.weight


class Plain(nn.Module):
    """Looked up as well, and right: what it derives is copied into what is there."""

    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4, bias=False)
        self.register_buffer("halved", torch.empty(4, 4), persistent=False)

    def finalize_loaded(self):
        self.halved.copy_(self.proj.weight / 2)

    def forward(self, x):
        return x @ self.halved


class Model(nn.Module):
    def __init__(self, order):
        super().__init__()
        self.layers = nn.ModuleList([Attention(order), Plain()])

    def load_weights(self, weights):
        for name, weight in weights:
            self.get_parameter(name).data.copy_(weight)
        for layer in self.layers:
            finalize = getattr(layer, "finalize_loaded", None)
            if finalize is not None:
                finalize()

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
