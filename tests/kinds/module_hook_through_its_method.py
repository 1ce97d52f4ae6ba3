"""The quantisation method's hook calls a method of its module: parameters are restored after it, as after the hook itself."""
import torch


class Method:
    def apply(self, layer, x):
        return layer(x)

    def process_weights_after_loading(self, layer):
        layer.prepare_weights()


class Experts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4), requires_grad=False)
        self.quant_method = Method()

    def prepare_weights(self):
        self.weight.data = self.weight.data.t().contiguous()  # warning RB102
        self.derived = self.weight * 2  # error RB101

    def forward(self, x):
        return x * self.derived * self.weight


class Restored(torch.nn.Module):
    """As above, and run-time code reads nothing but the parameter, into which the results are copied back."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(4), requires_grad=False)
        self.quant_method = Other()

    def finalize_scale(self):
        self.scale.data.copy_(self.scale.data.t() * 2)

    def forward(self, x):
        return x * self.scale


class Other:
    def apply(self, layer, x):
        return layer(x)

    def process_weights_after_loading(self, layer):
        layer.finalize_scale()
