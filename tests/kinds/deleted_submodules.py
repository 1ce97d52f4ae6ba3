import torch
from torch import nn
class MoE(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
    def process_weights_after_loading(self, dtype):
        if hasattr(self, "_fused"):
            return
        self.register_buffer("_fused", torch.stack([e.weight for e in self.experts]), persistent=False)
        del self.experts
    def forward(self, x):
        return x @ self._fused
