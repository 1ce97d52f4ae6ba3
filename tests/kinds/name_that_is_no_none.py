"""Attributes are emptied under the names that they were read by, so none of the names is None and a layerwise reload finds no room."""

import torch


class Kernel:
    def process_weights_after_loading(self, layer):
        if getattr(layer, "is_packed", False):  # warning RB204
            return
        layer.packed = getattr(layer, self.weight_name).t().contiguous()
        for name in (self.weight_name, self.other_name):
            if name is None:
                continue
            param = getattr(layer, name)
            param.data = torch.empty(0)
        layer.is_packed = True

    def apply_weights(self, layer, x):
        return x @ layer.packed
