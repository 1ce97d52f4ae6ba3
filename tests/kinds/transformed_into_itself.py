import torch
class Method:
    def __init__(self):
        self.s = torch.ones(8)
        self.r = torch.ones(8)
    def process_weights_after_loading(self, layer):
        self.s.copy_(self.s * 0.5)  # error RB301
        torch.mul(self.r, 0.5, out=self.r)  # error RB301
    def apply(self, layer, x):
        return self.s * self.r
