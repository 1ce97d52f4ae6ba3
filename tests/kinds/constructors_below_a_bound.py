"""A class is known up to a bound; the constructors below it make their tensors through a helper, a local function or arithmetic."""
import torch


def make_locks(device):
    return torch.zeros(16, dtype=torch.int32, device=device)


class ByHelper:
    def __init__(self, scale):
        self.scale = scale


class LockedByHelper(ByHelper):
    def __init__(self, scale):
        super().__init__(scale)
        self.locks = make_locks(scale.device)


class ByLocalFunction:
    def __init__(self, scale):
        self.scale = scale


class LockedByLocalFunction(ByLocalFunction):
    def __init__(self, scale):
        super().__init__(scale)

        def each(value):
            return None if value is None else torch.full((4,), float(value), device=scale.device)

        self.locks = each(1.0)


class ByArithmetic:
    def __init__(self, scale):
        self.scale = scale


class LockedByArithmetic(ByArithmetic):
    def __init__(self, scale):
        super().__init__(scale)
        self.locks = (scale * scale).squeeze()


class ByNothing:
    def __init__(self, scale):
        self.scale = scale


class LockedByNothing(ByNothing):
    def __init__(self, scale):
        super().__init__(scale)
        self.locks = None


class Kernel:
    def __init__(self, experts):
        self.experts = experts


def kernel_by_helper(experts_cls: type[ByHelper], scale) -> Kernel:
    return Kernel(experts_cls(scale))


def kernel_by_local_function(experts_cls: type[ByLocalFunction], scale) -> Kernel:
    return Kernel(experts_cls(scale))


def kernel_by_arithmetic(experts_cls: type[ByArithmetic], scale) -> Kernel:
    return Kernel(experts_cls(scale))


def kernel_by_nothing(experts_cls: type[ByNothing], scale) -> Kernel:
    return Kernel(experts_cls(scale))


class Method:
    def __init__(self, first, second, third, fourth):
        self.first, self.second, self.third, self.fourth = first, second, third, fourth

    def process_weights_after_loading(self, layer):
        self.helped = kernel_by_helper(self.first, layer.weight_scale)  # error RB201
        self.local = kernel_by_local_function(self.second, layer.weight_scale)  # error RB201
        self.computed = kernel_by_arithmetic(self.third, layer.weight_scale)  # error RB201
        self.plain = kernel_by_nothing(self.fourth, layer.weight_scale)

    def apply(self, layer, x):
        return [k.experts.locks for k in (self.helped, self.local, self.computed, self.plain)]
