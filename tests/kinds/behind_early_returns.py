import torch
from torch.nn import Parameter
class M:
    def process_weights_after_loading(self, layer):
        if self.a and not self.b:
            if not plat.sm90 and not plat.sm100:
                raise RuntimeError
            if not plat.ok(layer):
                raise RuntimeError
            layer.backend = "x"
            return
        if self.c or self.b:
            layer.w.data = layer.w.data.view(torch.int8)
            return
        if self.kind == "k90":
            self._k90(layer)
            return
        if self.kind == "k120":
            self._k120(layer)
            return
        if self.d:
            layer.alpha = Parameter(torch.full((4,), 1.7))  # warning RB103
            return
        if FLAG:
            layer.w.data = torch.cat([layer.w.data])  # warning RB102
            return
        elif XPU:
            return
        else:
            w = ext(layer.w)
            del layer.w
            layer.w = Parameter(w.data)  # missed warning RB103
    def apply(self, layer, x):
        return x @ layer.w * layer.alpha
