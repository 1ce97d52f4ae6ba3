"""A class keeps the addresses of what it has scaled: after a reload the address is in the set, and the new values stay unscaled."""
import foreign
import torch
from torch import nn


class Scaled(nn.Module):
    done: set[int] = set()

    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size, size), requires_grad=False)

    def process_weights_after_loading(self):
        address = self.weight.data.data_ptr()
        if address not in Scaled.done:  # error RB204
            self.weight.data.div_(self.weight.data.size(0))
            Scaled.done.add(address)

    def forward(self, x):
        return x @ self.weight


_warned = set()


class Warned:
    """The set is asked about, and what hangs on it is a warning."""

    def process_weights_after_loading(self, layer):
        if layer.prefix not in _warned:
            foreign.warn(layer.prefix)
            _warned.add(layer.prefix)
        layer.weight.data.copy_(layer.weight.data / layer.scale)

    def apply(self, layer, x):
        return x @ layer.weight


class Asked:
    """Nothing is added here: whether the name is in the set, configuration decides for both runs."""

    scaled: set[str] = set()

    def process_weights_after_loading(self, layer):
        if layer.prefix in self.scaled:
            scaled = layer.weight.data / layer.weight.data.amax()
            layer.weight.data.copy_(scaled)

    def apply(self, layer, x):
        return x @ layer.weight
