"""What a constructor leaves None is set by the code that makes the object; on an object of another class it is not."""

import torch
from torch.nn import Parameter


class Context:
    def __init__(self):
        self.backend = None
        self.third = None
        self.other = None


class Other:
    def __init__(self):
        self.other = None


CONTEXT = Context()


def configure(arguments):
    context = CONTEXT
    context.backend = arguments.backend
    context.third = None
    other = Other()
    other.other = arguments.other
    return other


class Method:
    def process_weights_after_loading(self, layer):
        if CONTEXT.backend is not None:
            layer.register_parameter("global_scale", Parameter(layer.weight.amax()))  # warning RB103
        if CONTEXT.third is not None:
            layer.register_parameter("third_scale", Parameter(layer.weight.amin()))
        if CONTEXT.other is not None:
            layer.register_parameter("other_scale", Parameter(layer.weight.amin()))

    def apply(self, layer, x):
        return x @ layer.weight * layer.global_scale * layer.third_scale * layer.other_scale


class Config:
    def get_quant_method(self, prefix):
        method = Scaled()
        method.input_dtype = dtype_of(prefix)
        return method


class Scaled:
    def __init__(self):
        self.input_dtype = None

    def process_weights_after_loading(self, layer):
        if self.input_dtype == torch.float8_e4m3fn:
            layer.scales.data = layer.scales.data * 512  # warning RB102

    def apply(self, layer, x):
        return x @ layer.weight * layer.scales
