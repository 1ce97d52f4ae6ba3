"""What is asserted to be of a class of parameters is a tensor from then on: loading fills it, and layerwise reloading puts it back."""
import torch
from torch.nn import Parameter


class Tagged(Parameter):
    pass


class Kernel:
    def __init__(self, weight_name):
        self.weight_name = weight_name

    def replace(self, layer, name, change):
        if name is not None and getattr(layer, name, None) is not None:
            setattr(layer, name, Parameter(change(getattr(layer, name)).data))  # warning RB103

    def process_weights_after_loading(self, layer):
        def pack(p):
            assert isinstance(p, Tagged)
            p.data = torch.ops.lib.pack(p.data)  # warning RB102
            return p

        self.replace(layer, self.weight_name, pack)

    def apply(self, layer, x):
        return torch.ops.lib.mm(x, getattr(layer, self.weight_name))
