"""What a hook calls on itself is judged in the hook, not as if loading called it."""
import torch
from torch.nn import Parameter


class Kernel:
    def process_weights_after_loading(self, layer):
        self.process_weights_for_x(layer)

    def process_weights_for_x(self, layer):
        layer.register_parameter("bias_f", Parameter(layer.bias.float()))  # warning RB103

    def apply(self, layer, x):
        return x + layer.bias_f
