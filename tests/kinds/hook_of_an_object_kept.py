"""A holder is made by the first run alone, and its hook called by both: what that hook binds on the holder is bound anew."""
import torch


class Experts:
    def __init__(self, config):
        self.config = config

    def process_weights_after_loading(self, layer):
        pass


class Padded(Experts):
    def __init__(self, config):
        super().__init__(config)
        self.strides = torch.full((4,), 8, device="cuda")

    def process_weights_after_loading(self, layer):
        self.doubled = torch.cat([layer.weight, layer.weight])  # error RB101

    def run(self, x):
        return x @ self.doubled * self.strides


class Folded(Experts):
    def process_weights_after_loading(self, layer):
        self.scratch = torch.cat([layer.weight, layer.weight])  # error RB101

    def run(self, x):
        return x @ self.scratch


class Kernel:
    def __init__(self, experts: Experts):
        self.experts = experts


def make_kernel(config, experts_cls: type[Experts]) -> Kernel:
    return Kernel(experts_cls(config))


class Method:
    def __init__(self, config):
        self.kernel = None

    def process_weights_after_loading(self, layer):
        if self.kernel is None:
            self.kernel = make_kernel(layer.config, self.experts_cls)
        self.kernel.experts.process_weights_after_loading(layer)

    def apply(self, layer, x):
        return self.kernel.experts.run(x)
