"""What a module of torch holds, of which the hook makes one by the way, is told by its attributes."""
import torch
from pack import packed
from torch.nn import Parameter


def quantized(weight):
    with torch.device("meta"):
        holder = torch.nn.Sequential(torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False))
    holder[0].weight = weight
    return holder[0].weight


class Method:
    def create_weights(self, layer):
        layer.register_parameter("weight", Parameter(torch.empty(4, 4)))

    def process_weights_after_loading(self, layer):
        layer.register_parameter("weight", Parameter(packed(quantized(layer.weight))))  # warning RB103

    def apply(self, layer, x):
        return x @ layer.weight


class Unchanged:
    def create_weights(self, layer):
        layer.register_parameter("weight", Parameter(torch.empty(4, 4)))

    def process_weights_after_loading(self, layer):
        layer.register_parameter("weight", Parameter(quantized(layer.weight)))

    def apply(self, layer, x):
        return x @ layer.weight
