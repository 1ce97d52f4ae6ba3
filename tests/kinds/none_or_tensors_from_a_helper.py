"""What a helper gives is bound whatever it is: nothing on one path, new tensors on another that only the helper's own arms lead to."""
import torch


def limits(config, count):
    if config.activation == "plain":
        return None, None
    limit = config.limit or config.clamp
    if limit is None:
        return None, None
    return torch.full((count,), 1.0), torch.full((count,), float(limit))


class Method:
    def __init__(self, config):
        self.config = config
        self.clamps = config.clamps

    def process_weights_after_loading(self, layer):
        if self.clamps:
            layer.limits = limits(self.config, layer.count)  # error RB101

    def apply(self, layer, x):
        low, high = layer.limits
        return torch.clamp(x, low, high)
