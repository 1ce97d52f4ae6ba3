"""The first run puts the transformed weight into new memory; the flag lets what a direct reload loads there stay raw."""
import torch


class Method:
    def create_weights(self, layer, size, **extra):
        layer.register_parameter("weight", torch.nn.Parameter(torch.empty(size, size), requires_grad=False))

    def process_weights_after_loading(self, layer):
        if getattr(layer, "_already_called_process_weights_after_loading", False):  # warning RB204
            return
        packed = torch.ops.lib.pack(layer.weight)
        layer.weight = torch.nn.Parameter(packed, requires_grad=False)
        layer._already_called_process_weights_after_loading = True

    def apply(self, layer, x):
        return torch.ops.lib.gemm(x, layer.weight)


class OnlyCopied:
    """The flag guards nothing but a copy into other memory: what is loaded there later is as it should be."""

    def create_weights(self, layer, size, **extra):
        layer.register_parameter("weight", torch.nn.Parameter(torch.empty(size, size), requires_grad=False))

    def process_weights_after_loading(self, layer):
        if getattr(layer, "_already_called_process_weights_after_loading", False):
            return
        layer.weight = torch.nn.Parameter(layer.weight.data.clone(), requires_grad=False)
        layer._already_called_process_weights_after_loading = True

    def apply(self, layer, x):
        return torch.ops.lib.gemm(x, layer.weight)


class FlagOfSomethingElse:
    """The flag is about something else; the second run wraps what is there as the first one did. Only where the
    checkpoint's shape is put back, which loading needs, there is new memory again.
    """

    def create_weights(self, layer, size, **extra):
        layer.register_parameter("scale", torch.nn.Parameter(torch.empty(size, 1, dtype=torch.float32)))

    def process_weights_after_loading(self, layer):
        if self.backend is None:
            self.backend = "auto"
        layer.scale = torch.nn.Parameter(layer.scale.data.squeeze(-1).to(torch.float64), requires_grad=False)  # warning RB103

    def __init__(self):
        self.backend = None

    def apply(self, layer, x):
        return torch.ops.lib.gemm(x, layer.scale)


class Widened:
    """What the first run made has more elements than a checkpoint's tensor: loading into it raises, as it should."""

    def create_weights(self, layer, size, **extra):
        layer.register_parameter("scale", torch.nn.Parameter(torch.empty(size), requires_grad=False))

    def process_weights_after_loading(self, layer):
        if getattr(layer, "_widened", False):
            return
        layer.scale = torch.nn.Parameter(layer.scale.repeat(4), requires_grad=False)
        layer._widened = True

    def apply(self, layer, x):
        return torch.ops.lib.gemm(x, layer.scale)
