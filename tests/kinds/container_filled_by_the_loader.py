"""The loader appends shards to a list on the parameter and the hook clears it: a reload fills it again, so the branch is taken again."""
import torch


def weight_loader(param, loaded_weight):
    param.shards.append(loaded_weight)


class Method:
    def create_weights(self, layer, size, **extra):
        weight = torch.nn.Parameter(torch.empty(size), requires_grad=False)
        weight.shards = []
        layer.register_parameter("weight", weight)

    def process_weights_after_loading(self, layer):
        shards = layer.weight.shards
        if len(shards) > 1:
            merged = torch.nn.Parameter(torch.cat(shards), requires_grad=False)
            merged.shards = shards
            shards.clear()
            layer.register_parameter("weight", merged)  # warning RB103

    def apply(self, layer, x):
        return x @ layer.weight


class FilledByNobody:
    def create_weights(self, layer, size, **extra):
        weight = torch.nn.Parameter(torch.empty(size), requires_grad=False)
        weight.pending = []
        layer.register_parameter("weight", weight)

    def process_weights_after_loading(self, layer):
        pending = layer.weight.pending
        if len(pending) > 1:
            layer.register_parameter("weight", torch.nn.Parameter(torch.cat(pending), requires_grad=False))

    def apply(self, layer, x):
        return x @ layer.weight


class CopiedIntoPlace:
    def create_weights(self, layer, size, **extra):
        weight = torch.nn.Parameter(torch.empty(size), requires_grad=False)
        weight.shards = []
        layer.register_parameter("weight", weight)

    def process_weights_after_loading(self, layer):
        shards = layer.weight.shards
        if len(shards) > 1:
            layer.weight.data.copy_(torch.cat(shards))
            shards.clear()

    def apply(self, layer, x):
        return x @ layer.weight
