"""Sizes are not known, but how many there are: one element of all, or one dimension in place of two, has no room for what is loaded."""
import torch


def replace_parameter(layer, name, new):
    old = getattr(layer, name)
    if old.shape == new.shape and old.dtype == new.dtype and old.stride() == new.stride():
        old.data.copy_(new)
    else:
        old.data = new


class Reduced:
    def process_weights_after_loading(self, layer):
        replace_parameter(layer, "input_scale", layer.input_scale.max())  # warning RB104

    def apply(self, layer, x):
        return torch.ops.lib.gemm(x, layer.weight, layer.input_scale)


class Flat:
    def create_weights(self, layer, rows, columns, **extra):
        layer.register_parameter("scale", torch.nn.Parameter(torch.empty(rows, columns), requires_grad=False))

    def process_weights_after_loading(self, layer):
        replace_parameter(layer, "scale", (layer.scale * 2).contiguous())
        replace_parameter(layer, "scale", torch.ops.lib.order(layer.scale).flatten())  # warning RB104

    def apply(self, layer, x):
        return torch.ops.lib.gemm(x, layer.weight, layer.scale)


class OneAlready:
    """The checkpoint has one number as well."""

    def create_weights(self, layer, **extra):
        layer.register_parameter("scale", torch.nn.Parameter(torch.empty(()), requires_grad=False))

    def process_weights_after_loading(self, layer):
        replace_parameter(layer, "scale", layer.scale.max())

    def apply(self, layer, x):
        return torch.ops.lib.gemm(x, layer.weight, layer.scale)


class OneInAVector:
    """Loaders fill one number in, whether or not there is a dimension around it."""

    def create_weights(self, layer, **extra):
        layer.register_parameter("scale", torch.nn.Parameter(torch.empty(1), requires_grad=False))

    def process_weights_after_loading(self, layer):
        replace_parameter(layer, "scale", layer.scale.max())

    def apply(self, layer, x):
        return torch.ops.lib.gemm(x, layer.weight, layer.scale)


class AlongOneDimension:
    """Whether a dimension is left out is not written here."""

    def process_weights_after_loading(self, layer):
        replace_parameter(layer, "scale", torch.amax(layer.scale, -1, True))

    def apply(self, layer, x):
        return torch.ops.lib.gemm(x, layer.weight, layer.scale)
