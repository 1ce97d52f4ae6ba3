"""The experts' hook runs on an object that its caller has just made."""
import torch
from torch.nn import Parameter


class Experts:
    def __init__(self, limit):
        self.limit = limit

    def process_weights_after_loading(self, layer):
        self.limit = Parameter(self.limit * layer.alpha)
        layer.limit = self.limit  # warning RB103

    def apply(self, layer, x):
        return x.clamp(max=layer.limit)


class Method:
    def create_weights(self, layer):
        layer.register_parameter("alpha", Parameter(torch.empty(4)))
        layer.register_parameter("start", Parameter(torch.empty(4)))

    def process_weights_after_loading(self, layer):
        experts = Experts(layer.start)
        experts.process_weights_after_loading(layer)
