"""What a helper found to be no parameter, and put one in its place for, is none that a checkpoint is loaded into."""
import torch
from torch.nn import Parameter


def refresh(layer, name, new):
    old = getattr(layer, name)
    if not isinstance(old, Parameter):
        setattr(layer, name, Parameter(new, requires_grad=False))
    elif not layer.refreshed:
        raise TypeError(name)
    elif old.data.shape == new.shape and old.data.dtype == new.dtype:
        old.data.copy_(new)
    else:
        old.data = new


class Method:
    def create_weights(self, layer):
        layer.register_parameter("weight", Parameter(torch.empty(4, 4, dtype=torch.uint8)))
        layer.register_parameter("input_scale", Parameter(torch.empty(4)))
        layer.refreshed = False

    def process_weights_after_loading(self, layer):
        assert layer.weight.dtype == torch.uint8
        layer.weight = Parameter(layer.weight.to(torch.bfloat16))  # warning RB103
        refresh(layer, "inverse_scale", (1 / layer.input_scale).to(torch.float32))
        layer.refreshed = True

    def apply(self, layer, x):
        return torch.ops.lib.gemm(x, layer.weight, layer.inverse_scale)
