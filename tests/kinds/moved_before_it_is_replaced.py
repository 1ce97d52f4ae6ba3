"""A captured parameter is moved to new memory and then another one takes its place: two statements that have to change.

Where its size decides whether it is moved, what the first run left may have the right one. Moves one after another in one
function are seen together: the last one stands for all.
"""
import torch
from kernels import shuffle_weight


def interleaved(tensor):
    return torch.cat([tensor, tensor])


class Scaled:
    def __init__(self, config):
        self.scaled = config.scaled

    def process_weights_after_loading(self, layer):
        if self.scaled:
            layer.scales.data = layer.scales.data * 512  # warning RB102
        layer.scales = torch.nn.Parameter(interleaved(layer.scales), requires_grad=False)  # warning RB103

    def apply(self, layer, x):
        return x * layer.scales


class Enlarged:
    def process_weights_after_loading(self, layer):
        self._enlarge(layer)
        layer.weight = torch.nn.Parameter(interleaved(layer.weight), requires_grad=False)  # warning RB103

    def _enlarge(self, layer):
        size = layer.weight.shape[0]
        wanted = (size + 127) // 128 * 128
        if wanted == size:
            return
        large = torch.zeros(wanted, layer.weight.shape[1])
        large[:size] = layer.weight
        layer.weight.data = large

    def apply(self, layer, x):
        return x @ layer.weight


class Shuffled:
    def process_weights_after_loading(self, layer):
        weight = layer.weight
        weight.data = shuffle_weight(weight)  # warning RB102
        layer.weight = torch.nn.Parameter(weight.data, requires_grad=False)  # warning RB103

    def apply(self, layer, x):
        return x @ layer.weight


class Packed:
    def process_weights_after_loading(self, layer):
        layer.scales.data = layer.scales.t().contiguous()  # warning RB102
        self._pack(layer)

    def _pack(self, layer):
        layer.scales.data = torch.cat([layer.scales, layer.scales])  # warning RB102

    def apply(self, layer, x):
        return x * layer.scales


class InSteps:
    def process_weights_after_loading(self, layer):
        layer.scales.data = layer.scales.t().contiguous()
        layer.scales.data = torch.cat([layer.scales, layer.scales])  # warning RB102

    def apply(self, layer, x):
        return x * layer.scales
