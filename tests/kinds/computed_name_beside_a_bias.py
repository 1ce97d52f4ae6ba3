"""One name is computed, the other is written out and asked for: the bias is what it was, and float32 already in the second run."""
import torch
from torch.nn import Parameter


class Method:
    def __init__(self, names):
        self.names = names

    def process_weights_after_loading(self, layer):
        for name in self.names:
            setattr(layer, name, Parameter(torch.ops.lib.pack(getattr(layer, name))))  # warning RB103
        if hasattr(layer, "bias") and layer.bias is not None:
            layer.bias = Parameter(layer.bias.data, requires_grad=False)

    def apply(self, layer, x):
        return torch.ops.lib.mm(x, layer.weight, layer.bias)
