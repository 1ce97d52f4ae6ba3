"""The loader's own statements: it is given new tensors in each load, and what it binds of them is not what was captured."""
import torch
from torch import nn


def default_weight_loader(param, loaded_weight):
    param.data.copy_(loaded_weight)


class WithMap(nn.Module):
    def __init__(self):
        super().__init__()
        self.token_map = None
        self.weight = nn.Parameter(torch.empty(4, 4))

    def load_weights(self, weights):
        params_dict = dict(self.named_parameters())
        loaded = set()
        for name, loaded_weight in weights:
            if name == "token_map":
                self.token_map = nn.Parameter(loaded_weight, requires_grad=False)  # error RB103
                continue
            param = params_dict[name]
            loader = getattr(param, "weight_loader", default_weight_loader)
            loader(param, loaded_weight)
            loaded.add(name)
        self.number_loaded = len(loaded)
        return loaded

    def forward(self, x):
        return (x @ self.weight)[self.token_map]


class Score(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(4, 4))
        self.bias = None

    def forward(self, x):
        return x @ self.weight + self.bias


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = Score()

    def load_weights(self, weights):
        def without_bias(weights):
            for name, weight in weights:
                if name == "score.bias":
                    self.score.bias = nn.Parameter(weight.to(self.score.weight.dtype))  # error RB103
                else:
                    yield name, weight

        params_dict = dict(self.named_parameters())
        for name, weight in without_bias(weights):
            default_weight_loader(params_dict[name], weight)

    def forward(self, x):
        return self.score(x)


class MapWrittenInPlace(nn.Module):
    """Silent: bound in the first load, written into in the others."""

    def __init__(self):
        super().__init__()
        self.place_map = None

    def load_weights(self, weights):
        for name, loaded_weight in weights:
            if name == "place_map":
                if self.place_map is None:
                    self.place_map = loaded_weight.clone()
                else:
                    self.place_map.copy_(loaded_weight)

    def forward(self, x):
        return x[self.place_map]


class ProjectionMadeOnce(nn.Module):
    """Silent: the module is made in the first load, and its weight is loaded in each."""

    def __init__(self):
        super().__init__()
        self.width: int | None = None
        self.projection = None

    def load_weights(self, weights):
        for name, weight in list(weights):
            if self.width is None:
                self.width = weight.shape[0]
                self.projection = nn.Linear(4, self.width, bias=False)
            self.projection.weight.data.copy_(weight)

    def forward(self, x):
        return self.projection(x)


class ProjectionMadeAgain(nn.Module):
    def __init__(self):
        super().__init__()
        self.projection = None

    def load_weights(self, weights):
        for name, weight in weights:
            self.projection = nn.Linear(4, weight.shape[0], bias=False)  # error RB201
            self.projection.weight.data.copy_(weight)

    def forward(self, x):
        return self.projection(x)


class Lazy:
    def __init__(self, make):
        self.make = make


class HoldsAFunction(nn.Module):
    """Silent: the function mentions the model alone, not what its maker was working with."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(4, 4))

    def load_weights(self, weights):
        for name, loaded_weight in weights:
            default_weight_loader(self.weight, loaded_weight)
        self.view = Lazy(lambda: self.weight)

    def forward(self, x):
        return x @ self.view.make()
