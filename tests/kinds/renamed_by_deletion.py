"""The hook moves a parameter to another name. Who reloads this engine directly gives the old name back first."""
import torch
from torch import nn
from torch.nn import Parameter


class Method:
    def create_weights(self, layer):
        layer.register_parameter("weight_packed", Parameter(torch.empty(4, 4), requires_grad=False))
        layer.register_parameter("scale", Parameter(torch.empty(4), requires_grad=False))

    def process_weights_after_loading(self, layer: nn.Module) -> None:
        layer.weight = layer.weight_packed  # warning RB103
        del layer.weight_packed
        layer.scale = Parameter(1.0 / layer.scale, requires_grad=False)  # warning RB103

    def apply(self, layer, x):
        return layer.weight, layer.scale
