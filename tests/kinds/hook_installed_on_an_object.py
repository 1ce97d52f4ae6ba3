"""A function that is put in the place of an object's or a class's hook is what the loader calls from then on."""
import functools
import types

import torch


def pack(scale, layer):
    layer.packed = layer.weight * scale  # error RB101


def refresh(self, layer):
    layer.bound = layer.weight + 1  # error RB101


def helper(layer):
    layer.through_lambda = layer.weight + 2  # error RB101


def install(method):
    method.process_weights_after_loading = functools.partial(pack, 2)
    method.process_weights_after_loading = types.MethodType(refresh, method)
    setattr(method, "process_weights_after_loading", lambda layer: helper(layer))


def make(original):
    @functools.wraps(original)
    def wrapped(self, layer):
        original(self, layer)
        layer.wrapped = layer.weight + 3  # error RB101
        self.table = layer.weight + 4  # error RB101

    return wrapped


class Method:
    def process_weights_after_loading(self, layer):
        pass

    def apply(self, layer, x):
        return x * layer.packed + layer.bound + layer.through_lambda + layer.wrapped + self.table


Method.process_weights_after_loading = make(Method.process_weights_after_loading)


def install_inner(linear):
    method = linear.quant_method
    original = method.process_weights_after_loading

    def process_weights_after_loading(layer):
        original(layer)
        layer.copies = torch.cat([layer.weight, layer.weight])  # error RB101

    method.process_weights_after_loading = process_weights_after_loading


def forward(layer, x):
    return x * layer.copies


class Attention(torch.nn.Module):
    def __init__(self, wo):
        super().__init__()
        self.wo = wo

        def pwal(layer):
            self.w = layer.weight + 5  # error RB101
            self.other = None

        wo.quant_method.process_weights_after_loading = pwal

    def forward(self, x):
        return x * self.w
