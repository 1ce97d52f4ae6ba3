import torch
from torch.nn import Parameter
class Config:
    def __init__(self, s, alpha=None):
        self.s = s
        self.alpha = alpha
def make(s, a, block):
    if backend() and block is None:
        assert a is not None
        return Config(s, alpha=(s * a))
    return Config(s)
class M:
    def __init__(self):
        self.block = [1, 32]
    def create_weights(self, layer):
        layer.register_parameter("w_scale", Parameter(torch.empty(4)))
    def cfg(self, layer):
        return make(layer.w_scale, a=None, block=self.block)
    def process_weights_after_loading(self, layer):
        layer.w_scale = Parameter(layer.w_scale * 2)  # warning RB103
        self.config = self.cfg(layer)
    def apply(self, layer, x):
        return self.config.s * self.config.alpha
