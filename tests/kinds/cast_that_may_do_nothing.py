"""A cast of the weight itself may give back the weight; between two dtypes that are known, and of what is computed, it does not."""

import torch
from torch import nn


class Method:
    def create_weights(self, layer, rows, dtype):
        layer.register_parameter("weight", nn.Parameter(torch.empty(rows, rows, dtype=dtype)))
        layer.register_parameter("scale", nn.Parameter(torch.empty(rows, dtype=torch.float16)))

    def process_weights_after_loading(self, layer):
        layer.narrow = layer.weight.data.bfloat16().contiguous()  # warning RB101
        layer.wide = layer.scale.data.float()  # error RB101
        layer.twice = (layer.weight.data * 2).bfloat16()  # error RB101
        layer.rate = torch.tensor(int(layer.config.rate), dtype=torch.int32)

    def apply(self, layer, x):
        return x @ layer.narrow * layer.wide + layer.twice + layer.rate


class FormatMethod:
    def create_weights(self, layer, rows, dtype):
        layer.register_parameter("table", nn.Parameter(torch.empty(rows, rows, dtype=dtype)))

    def process_weights_after_loading(self, layer):
        layer.formatted = torch.ops.device.format_cast(layer.table.data, 29)  # warning RB101
        layer.turned = torch.ops.device.format_cast(layer.table.data.t().contiguous(), 29)  # error RB101

    def apply(self, layer, x):
        return x @ layer.formatted + layer.turned
