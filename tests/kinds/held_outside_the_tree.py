"""Objects of classes outside the tree hold the tensors that they are made from."""
import lib
import torch
from torch import nn
from torch.nn import Parameter


class Kept(nn.Module):
    """Made from the first weights and kept: what it holds is not made again. That it is checked for its class hides nothing."""

    def __init__(self):
        super().__init__()
        self.weight = Parameter(torch.empty(4, 4))
        self.engine = None

    def finalize_weights(self):
        if self.engine is not None:  # error RB204
            return
        engine = lib.Engine(weights=lib.WeightPack(first=self.weight.data * 2), rank=0)
        if not isinstance(engine, lib.FastEngine):
            raise TypeError(type(engine))
        self.engine = engine

    def forward(self, x):
        return self.engine.run(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = Kept()

    def load_weights(self, weights):
        for name, weight in weights:
            self.get_parameter(name).data.copy_(weight)
        self.experts.finalize_weights()

    def forward(self, x):
        return self.experts(x)


class Rebuilt:
    """A new collection of a new scale each time."""

    def __init__(self):
        self.settings = None

    def process_weights_after_loading(self, layer):
        scale = lib.swizzle(layer.scale)
        self.settings = lib.ScaleConfig(weight_scale=scale, bits=4)  # error RB201

    def apply(self, layer, x):
        return lib.mm(x, layer.weight, self.settings)


class Collected:
    """A new collection of what a reload writes into where it is."""

    def __init__(self):
        self.settings = None

    def process_weights_after_loading(self, layer):
        self.settings = lib.ScaleConfig(weight_scale=layer.scale, bits=4)

    def apply(self, layer, x):
        return lib.mm(x, layer.weight, self.settings)


class Counted:
    """What it collects need not be a tensor, and nothing says that it is one."""

    def __init__(self):
        self.settings = None

    def process_weights_after_loading(self, layer):
        self.settings = lib.ScaleConfig(size=lib.measure(layer.weight.data))  # warning RB201

    def apply(self, layer, x):
        return lib.mm(x, layer.weight, self.settings)
