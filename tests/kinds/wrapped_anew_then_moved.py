"""A parameter is wrapped anew around the memory that is there, and moved to other memory by what is called next: that moves it."""
import torch


def requantised(weight):
    weight.data = torch.ops.lib.requantise(weight)  # warning RB102


class Block:
    def process_weights_after_loading(self, layer):
        layer.weight = torch.nn.Parameter(layer.weight.data, requires_grad=False)
        requantised(layer.weight)

    def apply(self, layer, x):
        return torch.ops.lib.gemm(x, layer.weight)
