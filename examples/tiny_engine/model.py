"""The model, and how weights get into it: once at start, and again whenever a trainer sends new ones."""

from collections.abc import Mapping

import torch
from torch import nn

from tiny_engine.attention import LatentAttention
from tiny_engine.experts import Experts
from tiny_engine.quantization import Linear


class TinyModel(nn.Module):
    """One layer of each kind."""

    def __init__(self, heads: int = 2, rank: int = 8, head_dim: int = 4) -> None:
        super().__init__()
        size = heads * head_dim
        self.attention = LatentAttention(heads, rank, head_dim)
        self.linear = Linear(size, size, prefix="linear")
        self.experts = Experts(experts=3, size=size)

    def load_weights(self, checkpoint: Mapping[str, torch.Tensor]) -> None:
        """Write the values into the parameters that stand there, then let every layer process its own."""
        parameters = dict(self.named_parameters())
        for name, value in checkpoint.items():
            parameters[name].data.copy_(value)
        self.linear.quant_method.process_weights_after_loading(self.linear)
        self.attention.process_weights_after_loading(torch.float32)
        self.experts.process_weights_after_loading()


def random_checkpoint(seed: int, model: TinyModel) -> dict[str, torch.Tensor]:
    """What a trainer would send: a value for every parameter that the model is created with."""
    generator = torch.Generator().manual_seed(seed)
    values = {}
    for name, parameter in model.named_parameters():
        if parameter.dtype == torch.int8:
            values[name] = torch.randint(-100, 100, parameter.shape, generator=generator, dtype=torch.int8)
        else:
            values[name] = (torch.rand(parameter.shape, generator=generator) + 0.1).to(parameter.dtype)
    return values
