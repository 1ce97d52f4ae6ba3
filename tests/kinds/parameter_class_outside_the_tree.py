"""Parameters of a class that is not in the tree: what they are made of is known, and layerwise reloading copies into them by name."""
import torch
from engine.parameters import RowParameter


class Method:
    def create_weights(self, layer, rows, weight_loader):
        data = torch.empty(rows, 16, dtype=torch.uint8)
        layer.register_parameter("weight", RowParameter(data=data, output_dim=0, weight_loader=weight_loader))
        layer.register_parameter("scale", RowParameter(data=torch.empty(rows, dtype=torch.float32), output_dim=0))

    def process_weights_after_loading(self, layer):
        layer.flat_scale = layer.scale.data.reshape(-1).to(torch.float32)
        layer.half_scale = layer.scale.data.to(torch.float16)  # error RB101
        layer.padded = torch.nn.functional.pad(layer.weight.data, (0, 16))  # warning RB101
        layer.weight.data = layer.padded.narrow(1, 0, 16)  # warning RB102

    def apply(self, layer, x):
        return torch.ops.lib.gemm(x, layer.weight, layer.padded, layer.flat_scale, layer.half_scale)
