"""All parameters are taken off the layer and put back under new names; a buffer that is registered once is none of them."""
import torch
from torch import nn
from torch.nn import Parameter


class Method:
    def create_weights(self, layer):
        layer.register_parameter("packed", Parameter(torch.empty(4, 4), requires_grad=False))

    def process_weights_after_loading(self, layer: nn.Module) -> None:
        weight = layer.packed.data * 2
        for name, _ in list(layer.named_parameters()):
            delattr(layer, name)
        layer.weight = Parameter(weight, requires_grad=False)  # warning RB103
        if not hasattr(layer, "locks"):
            layer.register_buffer("locks", torch.zeros(8, dtype=torch.int32, device=layer.weight.device))

    def apply(self, layer, x):
        return layer.weight, layer.locks
