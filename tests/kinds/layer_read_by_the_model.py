"""The method reads nothing of it, but a function that the model gives its experts to does."""
import torch
from torch.nn import Parameter


class Method:
    def process_weights_after_loading(self, layer):
        layer.alphas = Parameter(layer.scale.max())  # warning RB103
        layer.betas = Parameter(layer.scale.min())

    def apply(self, layer, x):
        return torch.ops.gemm(x, layer.weight)


class Other:
    def apply(self, layer, x):
        return torch.ops.gemm(x, layer.betas)


def run_experts(block, x):
    experts = block.experts
    return torch.ops.mega(x, experts.alphas)
