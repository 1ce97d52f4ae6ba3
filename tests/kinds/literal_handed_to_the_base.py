import torch
from torch.nn import Parameter
class Base:
    def __init__(self, block):
        self.block = block
        self.name = "s_inv" if block is not None else "s"
    def create_weights(self, layer):
        layer.register_parameter("w", Parameter(torch.empty(4, 4)))
    def process_weights_after_loading(self, layer):
        setattr(layer, self.name, layer.w.sum(0))  # error RB101
    def apply(self, layer, x):
        return x * layer.s + layer.s_inv
class PerTensor(Base):
    def __init__(self):
        super().__init__(block=None)
    def process_weights_after_loading(self, layer):
        setattr(layer, self.name, layer.w.sum(1))  # error RB101
