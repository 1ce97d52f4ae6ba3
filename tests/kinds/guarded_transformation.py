import torch
from torch.nn import Parameter
class Method:
    def create_weights(self, layer):
        layer.register_parameter("weight", Parameter(torch.empty(4, 4)))
    def process_weights_after_loading(self, layer):
        if not getattr(layer, "done", False):  # error RB204
            layer.weight.data.copy_(swizzle(layer.weight))
            layer.done = True
    def apply(self, layer, x):
        return layer.weight
