import torch
from torch.nn import Parameter
class S:
    def process_weights_after_loading(self, layer):
        if getattr(layer, "converted", False):  # error RB204
            return
        layer.idx = Parameter(torch.argsort(layer.g), requires_grad=False)  # warning RB103
        layer.converted = True
    def restore_weights_before_loading(self, layer):
        layer.converted = False
    def apply(self, layer, x):
        return k(x, layer.idx)
