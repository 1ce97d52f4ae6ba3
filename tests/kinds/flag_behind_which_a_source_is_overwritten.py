"""A flag on the layer ends the second run; that the first one also wrote over its source is not what keeps the value from being refreshed."""
import torch
from torch.nn import Parameter


class Method:
    def process_weights_after_loading(self, layer):
        if getattr(layer, "is_prepared", False):  # error RB204
            return
        layer.plain = layer.source
        layer.plain = layer.plain.float() * 2
        layer.source = layer.plain
        layer.is_prepared = True

    def apply(self, layer, x):
        return x @ layer.plain
