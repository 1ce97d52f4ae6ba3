"""Eight-bit linear layers: what the checkpoint holds, and what the kernel wants."""

import torch
from torch import nn

from tiny_engine.parameters import replace_parameter


class Int8Kernel:
    """Multiplies by an eight-bit weight; keeps a table of which scale belongs to which column."""

    def __init__(self, outputs: int, groups: int) -> None:
        self.table = torch.arange(outputs) // groups

    def apply(
        self, x: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor, workspace: torch.Tensor
    ) -> torch.Tensor:
        workspace.copy_(scales[self.table])
        return (x @ weight.float()) * workspace


class Int8LinearMethod:
    """Creates, processes and applies the weights of `Linear`."""

    def __init__(self, groups: int = 4) -> None:
        self.groups = groups
        self.bias_cache: dict[str, torch.Tensor] = {}

    def create_weights(self, layer: nn.Module, inputs: int, outputs: int) -> None:
        layer.weight = nn.Parameter(torch.zeros(outputs, inputs, dtype=torch.int8), requires_grad=False)
        layer.weight_scale = nn.Parameter(
            torch.zeros(outputs // self.groups, dtype=torch.bfloat16), requires_grad=False
        )
        layer.bias = nn.Parameter(torch.zeros(outputs, dtype=torch.bfloat16), requires_grad=False)

    def process_weights_after_loading(self, layer: nn.Module) -> None:
        # The kernel reads the weight by columns.
        layer.weight_t = nn.Parameter(layer.weight.t().contiguous(), requires_grad=False)
        replace_parameter(layer, "scale_f32", layer.weight_scale.float())
        layer.workspace = torch.zeros(layer.weight.shape[0], device=layer.weight.device)
        self.bias_cache[layer.prefix] = layer.bias.float()
        layer.kernel = Int8Kernel(layer.weight.shape[0], self.groups)

    def apply(self, layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        out = layer.kernel.apply(x, layer.weight_t, layer.scale_f32, layer.workspace)
        return out + self.bias_cache[layer.prefix]


class Linear(nn.Module):
    """A linear layer whose weights belong to a quantization method."""

    def __init__(self, inputs: int, outputs: int, prefix: str) -> None:
        super().__init__()
        self.prefix = prefix
        self.quant_method = Int8LinearMethod()
        self.quant_method.create_weights(self, inputs, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.quant_method.apply(self, x)
