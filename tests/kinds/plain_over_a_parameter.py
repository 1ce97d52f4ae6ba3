"""Reloading of this tree cannot register a parameter where a plain attribute stands, nor does a loader find one: it refuses."""
import torch
from torch.nn import Parameter


class Config:
    def __init__(self, tensor):
        self.tensor = tensor


class Method:
    def create_weights(self, layer):
        layer.register_parameter("raw_weight", Parameter(torch.empty(4)))

    def process_weights_after_loading(self, layer):
        packed = layer.raw_weight.float() * 2
        del layer.raw_weight
        layer.raw_weight = packed
        self.config = Config(packed)

    def apply(self, layer, x):
        return x * self.config.tensor


class Wrapping:
    def create_weights(self, layer):
        layer.register_parameter("weight", Parameter(torch.empty(4)))

    def process_weights_after_loading(self, layer):
        packed = layer.weight.float() * 2
        del layer.weight
        layer.weight = Config(packed)

    def apply(self, layer, x):
        return x * layer.weight.tensor
