"""A helper gives a view of what it was given on some arms and something new on another one; so may a cast."""
import torch


def encoded(scale):
    if scale.dtype == torch.float8_e8m0fnu:
        return scale.view(torch.uint8).contiguous()
    if scale.dtype == torch.uint8:
        return scale.contiguous()
    if not scale.dtype.is_floating_point:
        return None
    exponent = torch.round(torch.log2(scale))
    if int(exponent.max()) > 254:
        return None
    return exponent + 127


class Scaled:
    def process_weights_after_loading(self, layer):
        scale = encoded(layer.scale)
        if scale is None:
            return
        layer.encoded_scale = scale  # error RB101

    def apply(self, layer, x):
        return torch.ops.lib.gemm(x, layer.weight, layer.encoded_scale)


def viewed(scale):
    if scale.dtype == torch.uint8:
        return scale.t()
    return scale.view(torch.uint8)


class Viewed:
    """Either way it is the parameter's memory, which both protocols refresh."""

    def process_weights_after_loading(self, layer):
        layer.viewed_scale = viewed(layer.scale)

    def apply(self, layer, x):
        return torch.ops.lib.gemm(x, layer.weight, layer.viewed_scale)


class Norms(torch.nn.Module):
    def __init__(self, norm: torch.nn.LayerNorm):
        self.norm = norm
        self.fused = None
        self.is_fused = None

    def resolve(self):
        usable = isinstance(self.norm, torch.nn.Module) and self.norm.usable
        if usable:
            self.fused = self.norm.weight.detach().float()
        return usable

    def forward(self, x):
        if self.is_fused is None:  # warning RB205
            self.is_fused = self.resolve()
        return torch.ops.lib.norm(x, self.fused) if self.is_fused else self.norm(x)
