"""The value has other dimensions than the checkpoint, so what is loaded has to be put back first: the helper moves `.data` again."""
import torch


def replace_parameter(layer, name, new):
    old = getattr(layer, name)
    if old.shape == new.shape and old.dtype == new.dtype and old.stride() == new.stride():
        old.data.copy_(new)
    else:
        old.data = new


class Method:
    def create_weights(self, layer, rows, columns, **extra):
        layer.register_parameter("scale", torch.nn.Parameter(torch.empty(rows, columns), requires_grad=False))

    def process_weights_after_loading(self, layer):
        padded = torch.zeros(128, 4, device="cuda")
        padded[: layer.scale.shape[0]] = layer.scale
        replace_parameter(layer, "scale", padded.view(-1))  # warning RB104

    def apply(self, layer, x):
        return torch.ops.lib.gemm(x, layer.weight, layer.scale)


class SameShape:
    """What is padded keeps the checkpoint's dimensions, so loading finds a place and the helper copies."""

    def create_weights(self, layer, rows, columns, **extra):
        layer.register_parameter("scale", torch.nn.Parameter(torch.empty(rows, columns), requires_grad=False))

    def process_weights_after_loading(self, layer):
        padded = torch.zeros(128, 4, device="cuda")
        padded[: layer.scale.shape[0]] = layer.scale
        replace_parameter(layer, "scale", padded)

    def apply(self, layer, x):
        return torch.ops.lib.gemm(x, layer.weight, layer.scale)


class FlatBefore:
    """The checkpoint's tensor has one dimension as well."""

    def create_weights(self, layer, rows, **extra):
        layer.register_parameter("scale", torch.nn.Parameter(torch.empty(rows), requires_grad=False))

    def process_weights_after_loading(self, layer):
        padded = torch.zeros(128, 4, device="cuda")
        padded.view(-1)[: layer.scale.shape[0]] = layer.scale
        replace_parameter(layer, "scale", padded.view(-1))

    def apply(self, layer, x):
        return torch.ops.lib.gemm(x, layer.weight, layer.scale)
