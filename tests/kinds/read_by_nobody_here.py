"""The method spells out what it reads of its layer; another method's layer has an attribute of the same name."""
import torch
from torch.nn import Parameter


class Scheme:
    def process_weights_after_loading(self, layer):
        layer.global_scale = Parameter(layer.global_scale.max())
        layer.alpha = Parameter(1 / layer.global_scale)  # warning RB103

    def apply_weights(self, layer, x):
        return gemm(x, layer.weight, layer.alpha)


class Other:
    def apply_weights(self, layer, x):
        return gemm(x, layer.weight, layer.global_scale)
