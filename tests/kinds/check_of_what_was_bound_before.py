"""A check refuses what an earlier decision bound: the hook is also executed with that decision the other way."""

import torch
from torch.nn import Parameter


class Spec:
    def __init__(self, is_narrow: bool, activation: str | None) -> None:
        self.is_narrow = is_narrow
        self.activation = activation


class Method:
    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def create_weights(self, layer: torch.nn.Module, size: int) -> None:
        layer.weight = Parameter(torch.empty(size, size))
        if self.spec.activation is not None:
            layer.input_scale = Parameter(torch.empty(1))

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        layer.weight_only = self.spec.is_narrow and self.spec.activation is None
        layer.is_packed = False
        if layer.keeps_rows:
            if not layer.weight_only:
                raise NotImplementedError
            layer.rows = layer.weight.detach().clone()  # error RB101
        if layer.keeps_columns:
            if not layer.is_packed:
                raise NotImplementedError
            layer.columns = layer.weight.detach().clone()

    def apply(self, layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x @ layer.weight + layer.rows + layer.columns
