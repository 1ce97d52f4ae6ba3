import torch
from torch import nn
from torch.nn import Parameter
def replace_parameter(layer, name, new):
    old = getattr(layer, name)
    if old.shape == new.shape and old.dtype == new.dtype and old.stride() == new.stride():
        old.data.copy_(new)
    else:
        layer.register_parameter(name, Parameter(new, requires_grad=False))
class Kernel:
    def __init__(self, t):
        self.t = t
class M:
    def __init__(self):
        self.kernel = None
    def create_weights(self, layer):
        layer.register_parameter("weight", Parameter(torch.empty(4, 4)))
        layer.register_parameter("input_scale", Parameter(torch.empty(4)))
    def process_weights_after_loading(self, layer):
        replace_parameter(layer, "input_scale", torch.ones(4, device=layer.weight.device))
        if self.kernel is None:
            self.kernel = Kernel(1.0 / layer.input_scale)
    def apply(self, layer, x):
        return self.kernel.t * x
