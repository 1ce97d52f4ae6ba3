"""The scale comes from a statement that binds parameters under names made elsewhere: it is new in every run."""
import third_party
import torch
from torch.nn import Parameter


class Method:
    def create_weights(self, layer):
        layer.register_parameter("weight", Parameter(torch.empty(4)))
        layer.register_parameter("scale", Parameter(torch.empty(4)))

    def process_weights_after_loading(self, layer):
        for name, tensor in third_party.convert(layer.weight).items():
            setattr(layer, name, Parameter(tensor))  # missed warning RB103
        scale = getattr(layer, "global_scale", None)
        if scale is not None:
            layer.scale.data.copy_(scale)

    def apply(self, layer, x):
        return x * layer.scale
