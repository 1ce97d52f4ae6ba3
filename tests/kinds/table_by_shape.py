"""Indices kept in a table by shape: every layer of that shape shares them, so they cannot hold anything of the weights."""
import third_party
import torch

_INDICES: dict = {}
_ORDERS: dict = {}


class Method:
    def process_weights_after_loading(self, layer):
        key = (tuple(layer.weight.shape), 128)
        indices = _INDICES.get(key)
        if indices is None:
            indices = third_party.permutation(layer.weight)
            _INDICES[key] = indices
        layer.sorted = layer.weight[indices]  # error RB101

    def apply(self, layer, x):
        return torch.ops.lib.mm(x, layer.sorted, _INDICES[(tuple(layer.weight.shape), 128)])


class Shuffled:
    """What the indices put into order holds the new weights alone, however the indices were computed."""

    def process_weights_after_loading(self, layer):
        key = (layer.weight.shape[0], 128)
        orders = _ORDERS.get(key)
        if orders is None:
            orders = {"rows": third_party.permutation(layer.weight)}
            _ORDERS[key] = orders
        shuffled = torch.empty_like(layer.weight)
        shuffled.copy_(layer.weight.data.index_select(0, orders["rows"]))
        layer.weight = torch.nn.Parameter(shuffled)  # warning RB103

    def apply(self, layer, x):
        return torch.ops.lib.mm(x, layer.weight)
