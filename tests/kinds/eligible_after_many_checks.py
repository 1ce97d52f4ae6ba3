"""What a method does once a chain of checks in another function has come out well, and what no check ever lets it do."""

import torch


class Kernel:
    def _eligible(self, layer):
        if (self.perm_name is not None and getattr(layer, self.perm_name, None) is not None) or self.config.reorders:
            return False
        weight = getattr(layer, self.weight_name, None)
        scale = getattr(layer, self.scale_name, None)
        if weight is None or scale is None:
            return False
        if torch.iinfo(weight.dtype).bits // self.config.bits != 8:
            return False
        rows = getattr(weight, "rows", None)
        if rows is None or rows != 1:
            return False
        if weight.dim() != 2 or scale.dim() != 2:
            return False
        if len({t.dtype for t in (weight, scale)}) != 1:
            return False
        return scale.shape[1] > 0 and weight.shape[1] % scale.shape[1] == 0

    def _suits(self, layer):
        if not getattr(layer, "suits", False):
            return False, "it does not"
        if layer.weight.shape[0] % 32 != 0 or layer.weight.shape[1] % 32 != 0:
            return False, "sizes"
        if layer.amx and layer.weight.dtype == torch.bfloat16:
            return True, "amx"
        if layer.amx:
            return False, "type"
        return True, "vec"

    def _never(self, layer):
        if layer.weight.dim() != 2 or not layer.dense:
            return False
        return False

    def process_weights_after_loading(self, layer):
        if self._eligible(layer):
            layer.fast_weight = torch.ops.lib.pack(getattr(layer, self.weight_name))  # error RB101
        suits, why = self._suits(layer)
        if suits:
            layer.wide_weight = torch.ops.lib.pack(layer.weight)  # error RB101
        if self._never(layer):
            layer.no_weight = layer.weight.t().contiguous()

    def apply_weights(self, layer, x):
        return x @ layer.fast_weight @ layer.wide_weight @ layer.no_weight
