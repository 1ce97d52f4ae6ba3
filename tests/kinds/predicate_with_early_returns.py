"""A predicate that gives False early, for one reason after another: what is done where it gives True is looked at too."""
import torch


class Method:
    def _eligible(self, layer) -> bool:
        weight = getattr(layer, "weight", None)
        scale = getattr(layer, "scale", None)
        if weight is None or scale is None:
            return False
        bits = self.config.bits
        if torch.iinfo(weight.dtype).bits // bits != 8:
            return False
        in_dim = getattr(weight, "input_dim", None)
        packed_dim = getattr(weight, "packed_dim", None)
        if in_dim is None or packed_dim is None or in_dim != packed_dim:
            return False
        if not (in_dim == packed_dim == 1):
            return False
        if weight.dim() != 2 or scale.dim() != 2:
            return False
        groups = scale.shape[1]
        return groups > 0 and weight.shape[1] % groups == 0

    def process_weights_after_loading(self, layer):
        if getattr(layer, "_done", False):  # error RB204
            return
        if not self._eligible(layer):
            layer.weight.data = layer.weight.t().contiguous()  # warning RB102
            return
        layer.packed = torch.ops.lib.pack(layer.weight)
        layer._done = True

    def apply(self, layer, x):
        return x @ layer.packed
