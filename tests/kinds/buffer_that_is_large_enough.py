"""What was allocated for a size is not smaller than that size."""
import torch


class Pool:
    def __init__(self):
        self.storage = None

    def reserve(self, size):
        if self.storage is None or self.storage.numel() < size:
            self.storage = torch.empty(size)


class Method:
    def __init__(self):
        self.pool = Pool()

    def process_weights_after_loading(self, layer):
        if layer.gated:
            layer.parts = 2
        self.pool.reserve(layer.rows * layer.columns)

    def apply(self, layer, x):
        return x + self.pool.storage
