"""What is loaded cannot be copied into what the first run left, as its bits mean something else: the checkpoint's dtype is put
back before the next load, and then the helper moves `.data` again.
"""
import torch


def replace_parameter(layer, name, new):
    old = getattr(layer, name)
    if old.shape == new.shape and old.dtype == new.dtype and old.stride() == new.stride():
        old.data.copy_(new)
    else:
        old.data = new


class Reinterpreted:
    def process_weights_after_loading(self, layer):
        scale = layer.scale.view(torch.float8_e8m0fnu)
        replace_parameter(layer, "scale", scale.t().contiguous())  # warning RB104

    def apply(self, layer, x):
        return torch.ops.lib.gemm(x, layer.weight, layer.scale)


class Packed:
    def create_weights(self, layer, rows, columns, **extra):
        packed = torch.nn.Parameter(torch.empty(rows, columns // 8, dtype=torch.int32), requires_grad=False)
        layer.register_parameter("packed", packed)

    def process_weights_after_loading(self, layer):
        nibbles = ((layer.packed >> torch.arange(8)) & 15).to(torch.int8)
        replace_parameter(layer, "packed", nibbles)  # warning RB104

    def apply(self, layer, x):
        return torch.ops.lib.gemm(x, layer.packed)


class Converted:
    """A loader converts plain numbers as it copies them, so that the helper copies as well."""

    def create_weights(self, layer, rows, **extra):
        layer.register_parameter("scale", torch.nn.Parameter(torch.empty(rows, dtype=torch.float32), requires_grad=False))

    def process_weights_after_loading(self, layer):
        replace_parameter(layer, "scale", layer.scale.to(torch.bfloat16))

    def apply(self, layer, x):
        return torch.ops.lib.gemm(x, layer.weight, layer.scale)


class Constant:
    """What no weight is in is the same in each graph."""

    def create_weights(self, layer, rows, **extra):
        layer.register_parameter("zeros", torch.nn.Parameter(torch.empty(rows, dtype=torch.int32), requires_grad=False))

    def process_weights_after_loading(self, layer):
        replace_parameter(layer, "zeros", torch.tensor([8], dtype=torch.int8, device="cuda"))

    def apply(self, layer, x):
        return torch.ops.lib.gemm(x, layer.weight, layer.zeros)
