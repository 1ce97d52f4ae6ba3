"""The guard stands in one method, and what it builds in another that stands before it."""
import torch


class Experts(torch.nn.Module):
    def __init__(self, experts):
        self.experts = experts
        self.register_buffer("stacked", None, persistent=False)

    def pack(self):
        self.stacked = torch.stack([expert.weight.detach() for expert in self.experts])

    def forward(self, x):
        y = x.contiguous()
        if self.stacked is None:  # error RB205
            self.pack()
        return torch.ops.lib.experts(y, self.stacked)


class Refreshed(torch.nn.Module):
    """Loading calls it as well, and is judged there."""

    def __init__(self, experts):
        self.experts = experts
        self.stacked = None

    def pack_again(self):
        stacked = torch.stack([expert.weight.detach() for expert in self.experts])
        if self.stacked is None:
            self.stacked = stacked
        else:
            self.stacked.copy_(stacked)

    def process_weights_after_loading(self):
        self.pack_again()

    def forward(self, x):
        if self.stacked is None:
            self.pack_again()
        return torch.ops.lib.experts(x, self.stacked)
