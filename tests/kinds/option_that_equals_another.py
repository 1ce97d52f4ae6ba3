"""A helper settles what an option equals; a later test for other values of it is reached by a path that means one of those."""
from enum import Enum

import torch


class Backend(Enum):
    A = "a"
    B = "b"
    C = "c"
    D = "d"
    E = "e"
    F = "f"
    WRAPPED = "wrapped"
    WRAPPED_TOO = "wrapped_too"


WRAPPING = (Backend.WRAPPED, Backend.WRAPPED_TOO)


def replace_parameter(layer, name, new):
    old = getattr(layer, name)
    if old.shape == new.shape and old.dtype == new.dtype and old.stride() == new.stride():
        old.data.copy_(new)
    else:
        old.data = new


def converted(backend, weight):
    if backend == Backend.A:
        return weight + 1
    elif backend == Backend.B:
        return weight + 2
    elif backend == Backend.C:
        return weight + 3
    elif backend == Backend.D:
        return weight + 4
    elif backend == Backend.E:
        return weight + 5
    elif backend == Backend.F:
        return weight + 6
    elif backend in WRAPPING:
        return weight + 7
    else:
        raise ValueError(backend)


class Method:
    def __init__(self, backend: Backend):
        self.backend = backend

    def process_weights_after_loading(self, layer):
        self.setup(layer, converted(self.backend, layer.weight))

    def setup(self, layer, weight):
        wraps = self.backend in WRAPPING or (self.backend == Backend.A and layer.is_wide)
        if not wraps:
            replace_parameter(layer, "weight", weight)
        elif self.backend != Backend.A:
            layer.wrapped = weight  # error RB101

    def apply(self, layer, x):
        return torch.ops.lib.gemm(x, layer.wrapped if self.backend in WRAPPING else layer.weight)
