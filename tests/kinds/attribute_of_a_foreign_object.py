"""A class of another package is instantiated in each run; what is taken out of it as a parameter is new each time."""
import foreign
from torch.nn import Parameter


class Method:
    def __init__(self):
        self.linear_class = foreign.get_class()

    def process_weights_after_loading(self, layer):
        packed = self.linear_class(bits=4)
        packed.qweight.copy_(layer.qweight.detach())
        layer.qweight = Parameter(packed.qweight.detach(), requires_grad=False)  # warning RB103
        other = foreign.Linear(bits=4)
        other.scales.copy_(layer.scales.detach())
        layer.scales = Parameter(other.scales.detach(), requires_grad=False)  # warning RB103

    def apply(self, layer, x):
        return x * layer.qweight * layer.scales


class Shared:
    """The object is the same in both runs: a function gives it, or the constructor made it."""

    def __init__(self):
        self.packed = foreign.Linear(bits=4)

    def process_weights_after_loading(self, layer):
        self.packed.weight.copy_(layer.weight.detach())
        layer.weight = Parameter(self.packed.weight.detach(), requires_grad=False)
        given = foreign.workspace_of(4)
        given.scales.copy_(layer.scales.detach())
        layer.scales = Parameter(given.scales.detach(), requires_grad=False)

    def apply(self, layer, x):
        return x * layer.weight * layer.scales


class OnlySettings:
    """What is made anew has no tensors that anybody looks at."""

    def process_weights_after_loading(self, layer):
        layer.settings = foreign.Settings(bits=4)
        layer.weight.data.copy_(layer.weight.data * 2)

    def apply(self, layer, x):
        return foreign.mm(x, layer.weight, layer.settings)
