"""The method hands its layer to functions that can be followed, and to nobody else."""
import torch
from torch.nn import Parameter


def multiply(x, holder, name="factor"):
    return torch.ops.gemm(x, holder.weight, getattr(holder, name))


class Scheme:
    def process_weights_after_loading(self, layer):
        self.convert(layer)
        layer.offset = Parameter(layer.scale.min())
        layer.factor = Parameter(layer.scale.max())  # warning RB103
        layer.bound = Parameter(layer.scale.sum())  # warning RB103
        layer.product = Parameter(layer.bound * layer.factor)

    def convert(self, layer):
        """Only the hook runs it."""
        layer.ratio = Parameter(layer.offset / layer.factor)

    def apply(self, layer, x):
        return self.clamp(multiply(x, layer), layer)

    def clamp(self, x, given):
        return x.clamp(max=given.bound)


class Unknown:
    """Nobody can tell what the library reads."""

    def process_weights_after_loading(self, layer):
        layer.offset = Parameter(layer.scale.min())  # warning RB103

    def apply(self, layer, x):
        return torch.ops.opaque(x, layer)


class Other:
    def apply(self, layer, x):
        return torch.ops.other(x, layer.offset, layer.product, layer.ratio)
