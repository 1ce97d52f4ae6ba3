import torch
from abc import abstractmethod
class Experts:
    def __init__(self, config):
        self.config = config
    @abstractmethod
    def run(self, x): ...
class Fp8Experts(Experts):
    def __init__(self, config):
        super().__init__(config)
        self.strides = torch.full((4,), 8, device="cuda")
    def run(self, x):
        return x * self.strides
class PlainExperts(Experts):
    def run(self, x):
        return x
class Kernel:
    def __init__(self, experts):
        self.experts = experts
    def apply(self, x):
        return self.experts.run(x)
def make(config, experts_cls: type[Experts]) -> Kernel:
    experts = experts_cls(config)
    return Kernel(experts)
class Method:
    def __init__(self, config):
        self.backend, self.experts_cls = select(config)
    def process_weights_after_loading(self, layer):
        assert self.experts_cls is not None
        self.kernel = make(self.config, experts_cls=self.experts_cls)  # error RB201
    def apply(self, layer, x):
        return self.kernel.apply(x)
