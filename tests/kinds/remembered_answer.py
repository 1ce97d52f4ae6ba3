"""What a function remembers from before the hook decided more than once: other arms that hang on it are reached as well."""
from functools import lru_cache

import torch


@lru_cache
def is_old_hardware():
    return "gfx" in torch.cuda.get_device_properties(0).gcnArchName


class Scheme:
    def create_weights(self, layer, rows, **extra):
        dtype = torch.float8_e4m3fnuz if is_old_hardware() else torch.float8_e4m3fn
        layer.register_parameter("weight", torch.nn.Parameter(torch.empty(rows, dtype=dtype), requires_grad=False))
        layer.register_parameter("scale", torch.nn.Parameter(torch.empty(rows), requires_grad=False))

    def process_weights_after_loading(self, layer):
        if self.per_channel:
            if is_old_hardware():
                layer.channel_scale = layer.scale * 2  # error RB101
            else:
                layer.channel_scale = layer.scale
        elif self.per_block:
            if is_old_hardware():
                layer.block_scale = layer.scale * 2  # error RB101
            else:
                layer.block_scale = layer.scale

    def apply(self, layer, x):
        scale = layer.channel_scale if self.per_channel else layer.block_scale
        return torch.ops.lib.gemm(x, layer.weight, scale)
