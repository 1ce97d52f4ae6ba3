"""What packs a weight into another layout gives other memory; what another function outside the tree gives, nobody knows."""

import torch
from kernels import describe, dense


class Method:
    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        layer.packed = dense.pack_weight(layer.weight, recipe="narrow")  # error RB101
        layer.described = describe(layer.weight.data)  # warning RB101
        self.unpack_plan = dense.unpack_sizes(layer.weight.shape)

    def apply(self, layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return dense.mm(x, layer.packed, layer.described, self.unpack_plan)
