"""Only layerwise reloading deletes the flag, so only it runs the hook again: a workspace is new then, though a direct reload shows nothing."""
import torch


class Method:
    def process_weights_after_loading(self, layer):
        if getattr(layer, "_already_called_process_weights_after_loading", False):
            return
        layer.workspace = torch.zeros(64, dtype=torch.int32, device="cuda")  # error RB101
        layer._already_called_process_weights_after_loading = True

    def apply(self, layer, x):
        return torch.ops.lib.gemm(x, layer.weight, layer.workspace)
