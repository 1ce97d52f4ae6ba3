"""`create_weights` asks two things that nothing decides, in opposite senses, and keeps what follows: the hook is looked at with either."""
import torch


class Method:
    def create_weights(self, layer, size, **extra):
        layer.register_parameter("weight", torch.nn.Parameter(torch.empty(size, size), requires_grad=False))
        layer.register_parameter("scale", torch.nn.Parameter(torch.empty(size), requires_grad=False))
        self.role = self._plan()

    def _plan(self):
        if not (self.config.serialized and not self.config.dynamic):
            return None
        return "fused"

    def process_weights_after_loading(self, layer):
        if self.role is None:
            return
        layer.factor = float(layer.scale.max().item())  # error RB202

    def apply(self, layer, x):
        return (x @ layer.weight) * layer.factor
