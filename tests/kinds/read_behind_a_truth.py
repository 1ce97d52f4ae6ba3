"""The only reader asks the device whether there is anything to do, which no captured graph can; the other asks for a size."""
import torch
from torch import nn


class Sampler(nn.Module):
    def load_weights(self, weights):
        load(self, weights)
        self.heads_w = torch.stack([head.weight for head in self.heads])
        self.embeddings_w = torch.stack([part.weight for part in self.parts])  # error RB101

    def sample(self, hidden, mask):
        codes = torch.zeros_like(mask)
        if not bool(mask.any()):
            return codes
        return (self.heads_w @ hidden).argmax(-1)

    def embed(self, codes):
        if codes.shape[0] == 0:
            return codes
        return self.embeddings_w[codes]
