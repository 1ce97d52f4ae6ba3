"""A class is known up to a bound, and is asked something by a property, where nothing tells its bound, before it is instantiated."""
from abc import ABC, abstractmethod

import torch



class Experts(ABC):
    def __init__(self, scale):
        self.scale = scale

    @abstractmethod
    def apply(self, x): ...

    @staticmethod
    def is_monolithic() -> bool:
        return False


class Locked(Experts):
    def __init__(self, scale):
        super().__init__(scale)
        self.locks = torch.zeros(16, dtype=torch.int32, device=scale.device)

    def apply(self, x):
        return x * self.locks


class Kernel:
    def __init__(self, experts, monolithic):
        self.monolithic = monolithic
        self.experts = experts

    def apply(self, x):
        return self.experts.apply(x)


def make_kernel(experts_cls: type[Experts], scale) -> Kernel:
    return Kernel(experts_cls(scale), False)


def select(config) -> tuple[str, type[Experts]]:
    return foreign(config)


class Method:
    def __init__(self, config):
        self.backend, self.experts_cls = select(config)

    def process_weights_after_loading(self, layer):
        if self.is_monolithic:
            layer.monolithic = True
        self.kernel = make_kernel(self.experts_cls, layer.weight_scale)  # error RB201

    @property
    def is_monolithic(self) -> bool:
        return self.experts_cls.is_monolithic()

    def apply(self, layer, x):
        return self.kernel.apply(x)
