"""The first run leaves the member for which the second goes past the transformation."""
import torch
from third_party import Strategy
from torch.nn import Parameter


class Method:
    def create_weights(self, layer):
        layer.register_parameter("scale", Parameter(torch.empty(4)))

    def process_weights_after_loading(self, layer):
        if self.strategy == Strategy.TENSOR:
            layer.scale = Parameter(layer.scale.repeat(4))
            self.strategy = Strategy.CHANNEL

    def apply(self, layer, x):
        return x * layer.scale
