"""An attribute of the layer, set by the hook itself from a list that the method was built with, decides between two arms."""
import torch

BLOCK = 32


def plain(layer, w):
    layer.workspace = torch.zeros(4, device=w.device)
    return w


def blocked(layer, w):
    layer.workspace = torch.zeros(8, device=w.device)  # error RB101
    return w


def convert(backend, layer, w):
    if backend == "marlin":
        size = getattr(layer, "weight_block_size", None)
        if size == [1, 32]:
            w = blocked(layer, w)
        else:
            w = plain(layer, w)
    return w


class Method:
    def __init__(self):
        self.weight_block_size = [1, BLOCK]

    def process_weights_after_loading(self, layer):
        layer.weight_block_size = self.weight_block_size
        convert(self.backend, layer, layer.weight)

    def apply(self, layer, x):
        return x * layer.workspace
