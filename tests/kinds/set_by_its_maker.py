"""What a constructor leaves None is set by the code that makes the object; another object's attribute of that name is not."""

import torch
from torch.nn import Parameter


class Config:
    def get_quant_method(self, layer, prefix):
        method = Method()
        method.input_dtype = activation_dtype(prefix)
        return method


def activation_dtype(prefix):
    return torch.int8 if prefix in CHOSEN else None


class Method:
    def __init__(self):
        self.input_dtype = None
        self.other_dtype = None

    def process_weights_after_loading(self, layer):
        layer.other_dtype = layer.weight.dtype
        if self.input_dtype is not None:
            layer.register_parameter("global_scale", Parameter(layer.weight.amax()))  # warning RB103
        if self.other_dtype is not None:
            layer.register_parameter("other_scale", Parameter(layer.weight.amin()))

    def apply(self, layer, x):
        return x @ layer.weight * layer.global_scale * layer.other_scale
