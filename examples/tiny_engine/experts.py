"""A mixture of experts with square weights, and a hook that wants a person's eye: few of its hazards have a safe fix."""

import torch
from torch import nn


class Experts(nn.Module):
    """Routes each row to one expert."""

    def __init__(self, experts: int, size: int) -> None:
        super().__init__()
        self.router = nn.Parameter(torch.zeros(size, experts), requires_grad=False)
        self.w1 = nn.Parameter(torch.zeros(experts, size, size), requires_grad=False)
        self.w2 = nn.Parameter(torch.zeros(experts, size, size), requires_grad=False)
        self.row_peaks: torch.Tensor | None = None
        self.temperature = torch.ones(experts)

    def process_weights_after_loading(self) -> None:
        # Gate and up projection are interleaved for the kernel.
        self.w1.data = self.w1.data.flip(1)
        # The kernel reads the down projection by columns.
        self._parameters["w2"] = nn.Parameter(self.w2.transpose(1, 2).contiguous(), requires_grad=False)
        # Computed once, so a reload keeps the old model's.
        if self.row_peaks is None:
            self.row_peaks = self.w1.abs().amax(dim=-1)
        # Folded into itself once more by each reload.
        self.temperature.mul_(self.router.abs().amax(dim=0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = ((x @ self.router) / self.temperature).softmax(dim=-1)
        hidden = torch.einsum("bi,eoi->ebo", x, self.w1) / self.row_peaks.unsqueeze(1)
        out = torch.einsum("ebi,eoi->ebo", hidden.relu(), self.w2)
        return torch.einsum("be,ebo->bo", gate, out)
