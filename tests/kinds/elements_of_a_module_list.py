import torch
from torch import nn
class Attn(nn.Module):
    def __init__(self):
        super().__init__()
        self.kv = nn.Linear(4, 4)
        self.w_kc = None
    def forward(self, x):
        return x @ self.w_kc
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn = Attn()
    def forward(self, x):
        return self.self_attn(x)
class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(n)])
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
class LM(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.model = Model(config.n)
    def forward(self, x):
        return self.model(x)
    def post_load_weights(self):
        for i in self.config.ids:
            a = self.model.layers[i].self_attn
            a.w_kc = torch.cat([a.kv.weight])  # error RB101
class LM2(LM):
    def post_load_weights(self):
        for layer in self.model.layers:
            layer.self_attn.w_kc = torch.cat([layer.self_attn.kv.weight])  # error RB101
class LM3(LM):
    def post_load_weights(self):
        for m in self.modules():
            if isinstance(m, Attn):
                m.w_kc = torch.cat([m.kv.weight])  # error RB101
