"""What the hook binds in one arm is read by run-time code in the other arm alone, but for one scale."""
import torch
from torch.nn import Parameter


class Scheme:
    def __init__(self, packed):
        self.packed = packed

    def process_weights_after_loading(self, layer):
        scale = layer.scale.max()
        if self.packed:
            layer.inverse = Parameter(1 / scale)
            layer.squared = Parameter(scale * scale)  # warning RB103
            return
        layer.inverse = layer.scale

    def apply(self, layer, x):
        if self.packed:
            return torch.ops.packed(x, layer.weight, layer.squared)
        return self.multiply(layer, x)

    def multiply(self, layer, x):
        return torch.ops.plain(x, layer.weight, layer.inverse)


class Settled:
    """The setting changes at run time, so nothing says which arm is taken then."""

    def __init__(self, packed):
        self.packed = packed

    def process_weights_after_loading(self, layer):
        if self.packed:
            layer.doubled = Parameter(layer.scale + layer.scale)  # warning RB103

    def apply(self, layer, x):
        if self.packed:
            return torch.ops.packed(x, layer.weight)
        return torch.ops.plain(x, layer.weight, layer.doubled)

    def unpack(self):
        self.packed = False
