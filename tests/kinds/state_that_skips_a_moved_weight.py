"""A state or a filled list, left by the first run, lets the second leave a reloaded weight as the checkpoint has it."""
import enum

import torch
from torch import nn
from torch.nn import Parameter


class State(enum.Enum):
    RAW = 0
    SORTED = 1


class Method:
    def create_weights(self, layer):
        layer.register_parameter("order", Parameter(torch.empty(4)))
        layer.state = State.RAW

    def process_weights_after_loading(self, layer):
        layer.order = Parameter(layer.order.data)
        if layer.state == State.RAW:  # error RB204
            layer.order.data = torch.argsort(layer.order)
            layer.state = State.SORTED

    def apply(self, layer, x):
        return x[layer.order]


class Wrapping:
    def create_weights(self, layer):
        layer.register_parameter("gate", Parameter(torch.empty(4)))
        layer.state = State.RAW

    def process_weights_after_loading(self, layer):
        layer.gate = Parameter(layer.gate.data)
        if layer.state == State.RAW:  # nothing is computed behind it
            layer.gate.data = layer.gate.data.view(2, 2)
            layer.state = State.SORTED

    def apply(self, layer, x):
        return x * layer.gate


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.packed_weight = Parameter(torch.empty(4, 4))
        self.engines = []

    def finalize_weights(self):
        if self.engines:  # error RB204
            return
        self.packed_weight.data = torch.roll(self.packed_weight.data, 1)
        self.engines = [4, 8]

    def forward(self, x):
        return x @ self.packed_weight


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = Experts()

    def load_weights(self, weights):
        self.experts.finalize_weights()
