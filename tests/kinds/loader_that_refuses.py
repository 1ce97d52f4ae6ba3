"""The weight loader raises once the hook has run, so no reload gets to the guard."""
import torch
from torch import nn
from torch.nn import Parameter


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = Parameter(torch.empty(4))
        self.ready = False

    def weight_loader(self, param, loaded):
        if self.ready:
            raise RuntimeError("no second load")
        param.data.copy_(loaded)

    def process_weights_after_loading(self, act_dtype):
        if self.ready:
            return
        self.alpha = self.w.float() * 2
        self.ready = True

    def forward(self, x):
        return x * self.alpha
