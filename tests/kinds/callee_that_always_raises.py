"""What a callee scans cannot be seen, so that it seems to raise: it is passed over in both runs. A refusal of the second alone is one."""
import torch
from third_party import scan
from torch.nn import Parameter


def attest(name):
    found = {}
    scan(found)
    if name not in found:
        raise RuntimeError(f"no operator {name}")


class Method:
    def create_weights(self, layer):
        layer.register_parameter("codes", Parameter(torch.empty(4)))

    def process_weights_after_loading(self, layer):
        attest("gather")
        layer.table = torch.cat([layer.codes, layer.codes])  # error RB101

    def apply(self, layer, x):
        return layer.table[x]


class Refusing:
    def __init__(self):
        self.ready = False

    def create_weights(self, layer):
        layer.register_parameter("codes", Parameter(torch.empty(4)))

    def begin(self):
        if self.ready:
            raise RuntimeError("weights are loaded once")
        self.ready = True

    def process_weights_after_loading(self, layer):
        attest("gather")
        self.begin()
        layer.lookup = torch.cat([layer.codes, layer.codes])

    def apply(self, layer, x):
        return layer.lookup[x]
