"""The bound of the class stands in quotes, and no other class is below it; or its own hook, not its constructor, makes the tensor."""
import torch
from torch import nn
from torch.nn import Parameter


class Experts:
    def __init__(self, moe):
        self.moe = moe
        self.strides = torch.full((4,), 8, device="cuda")

    def run(self, x):
        return x, self.strides


class Packed:
    def __init__(self, moe):
        self.moe = moe

    def run(self, x):
        raise NotImplementedError


class PackedByHook(Packed):
    def __init__(self, moe):
        super().__init__(moe)
        self.ones: torch.Tensor | None = None

    def process_weights_after_loading(self, layer):
        self.ones = torch.ones(4, device=layer.weight.device)

    def run(self, x):
        return x, self.ones


def build(experts_cls: type["Experts"], moe):
    return experts_cls(moe)


def build_packed(packed_cls: type[Packed], moe, layer):
    packed = packed_cls(moe)
    packed.process_weights_after_loading(layer)
    return packed


class Method:
    def __init__(self, moe, experts_cls, packed_cls):
        self.moe = moe
        self.experts_cls = experts_cls
        self.packed_cls = packed_cls

    def create_weights(self, layer):
        layer.register_parameter("weight", Parameter(torch.empty(4, 4), requires_grad=False))

    def process_weights_after_loading(self, layer: nn.Module) -> None:
        self.kernel = build(self.experts_cls, self.moe)  # error RB201
        self.packed = build_packed(self.packed_cls, self.moe, layer)  # error RB201

    def apply(self, layer, x):
        return self.kernel.run(x), self.packed.run(x), layer.weight
