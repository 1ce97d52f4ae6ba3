"""A holder is made anew by every run and its hook called: what that hook binds on the layer stays, whoever the holder is."""
import torch


class Experts:
    def __init__(self, config):
        self.config = config

    def process_weights_after_loading(self, layer):
        pass


class Padded(Experts):
    def process_weights_after_loading(self, layer):
        layer.derived = torch.cat([layer.weight, layer.weight])  # error RB101
        layer.bias.data = torch.cat([layer.bias, layer.bias])  # warning RB102
        self.scratch = torch.empty_like(layer.weight)


class Kernel:
    def __init__(self, experts: Experts):
        self.experts = experts


def make_kernel(config, experts_cls: type[Experts]) -> Kernel:
    return Kernel(experts_cls(config))


class Method:
    def process_weights_after_loading(self, layer):
        self.kernel = make_kernel(layer.config, self.experts_cls)
        self.kernel.experts.process_weights_after_loading(layer)

    def apply(self, layer, x):
        return self.kernel.experts.run(x @ layer.derived + layer.bias)
