"""A class is known up to a bound; the constructors below it make their tensors through helpers, or by arithmetic."""
from abc import ABC, abstractmethod

import torch


class Experts(ABC):
    def __init__(self, scale):
        self.scale = scale

    @abstractmethod
    def apply(self, x): ...


class Locked(Experts):
    def __init__(self, scale):
        super().__init__(scale)
        self.locks = (scale * scale).squeeze()

    def apply(self, x):
        return x * self.locks


class Kernel:
    def __init__(self, experts):
        self.experts = experts

    def apply(self, x):
        return self.experts.apply(x)


def make_kernel(experts_cls: type[Experts], scale) -> Kernel:
    return Kernel(experts_cls(scale))


class Method:
    def __init__(self, experts_cls: type[Experts]):
        self.experts_cls = experts_cls

    def process_weights_after_loading(self, layer):
        self.kernel = make_kernel(self.experts_cls, layer.weight_scale)  # error RB201

    def apply(self, layer, x):
        return self.kernel.apply(x)
