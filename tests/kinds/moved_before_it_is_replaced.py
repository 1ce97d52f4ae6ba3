"""A captured parameter is moved to new memory and then another one takes its place: two statements that have to change.

Where its size decides whether it is moved, what the first run left may have the right one.
"""
import torch


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
