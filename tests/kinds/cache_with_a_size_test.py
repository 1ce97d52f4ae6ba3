import torch
class M:
    def __init__(self):
        self._cache = {}
    def unit(self, device, n):
        s = self._cache.get(device)
        if s is None or s.numel() != n:
            s = torch.ones(n, device=device)
            self._cache[device] = s
        return s
    def process_weights_after_loading(self, layer):
        self.unit(layer.weight.device, layer.weight.shape[0])
    def apply(self, layer, x):
        return self._cache[x.device] * x
