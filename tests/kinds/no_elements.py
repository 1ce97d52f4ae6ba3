"""A tensor without elements has no address; one of shape () has."""
import torch
from torch.nn import Parameter


class Method:
    def process_weights_after_loading(self, layer):
        layer.g_idx = Parameter(torch.empty(0, dtype=torch.int, device=layer.weight.device))
        layer.order = Parameter(torch.empty((layer.weight.shape[0], 0), device=layer.weight.device))
        layer.one = Parameter(torch.ones((), device=layer.weight.device))  # warning RB103

    def apply(self, layer, x):
        return kernel(x, layer.weight, layer.g_idx, layer.order, layer.one)
