"""Layerwise reloading of this tree cannot register a parameter where a plain attribute stands: it refuses."""
import torch
from torch.nn import Parameter


class Config:
    def __init__(self, w):
        self.w = w


class Method:
    def create_weights(self, layer):
        layer.register_parameter("w", Parameter(torch.empty(4)))

    def process_weights_after_loading(self, layer):
        packed = layer.w.float() * 2
        del layer.w
        layer.w = packed  # warning RB101
        self.config = Config(packed)

    def apply(self, layer, x):
        return x * self.config.w
