"""A module's constant that a `try` binds to what the platform says, and its handler to False: either may hold."""
import torch

try:
    HAS_TILES = torch.cpu._is_amx_tile_supported()
except AttributeError:
    HAS_TILES = False


def pack(weight):
    if not HAS_TILES:
        return weight
    return torch.ops.lib.pack(weight)


class Method:
    def process_weights_after_loading(self, layer):
        layer.weight = torch.nn.Parameter(pack(layer.weight), requires_grad=False)  # warning RB103

    def apply(self, layer, x):
        return layer.weight @ x
