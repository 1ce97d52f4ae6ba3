"""The only reader waits for the device, which no captured graph can."""
import torch
from torch import nn


class Attention(nn.Module):
    def process_weights_after_loading(self, act_dtype):
        self.q_range = torch.tensor(200.0, device="cuda")

    def calc(self, q):
        self._q.copy_(q.abs().max() / self.q_range)
        self._q_float = self._q.item()

    def forward(self, q):
        return q
