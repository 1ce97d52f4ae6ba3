"""Two branches share a condition: each answer is given on some path, but the second branch wants a combination that no path tries."""
import torch
from torch import nn

FAST = torch.cuda.is_available()


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.proj = nn.Linear(4, 4)
        self.scale = None
        self.scale_k = None

    def post_load_weights(self):
        w = self.proj.weight
        if w.dtype in (torch.float8_e4m3fn, torch.float8_e4m3fnuz):
            self.scale = w.abs().max()  # error RB101
        if FAST and self.config.name == "packed" and w.dtype == torch.bfloat16:
            self.scale_k = w.abs().mean()  # error RB101

    def forward(self, x):
        return self.proj(x) * self.scale * self.scale_k
