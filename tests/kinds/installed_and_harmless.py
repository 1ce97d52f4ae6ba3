"""Functions put in the place of a hook that keep what they made, or that are no hooks at all."""
import torch


def _keep(layer, copies):
    kept = getattr(layer, "copies", None)
    if kept is None:
        layer.copies = copies
        return
    kept.copy_(copies)


def install(linear):
    method = linear.quant_method
    original = method.process_weights_after_loading

    def process_weights_after_loading(layer):
        out = original(layer)
        _keep(layer, torch.cat([layer.weight, layer.weight]))
        return out

    def describe(layer):
        layer.summary = layer.weight * 2

    method.process_weights_after_loading = process_weights_after_loading
    method.describe = describe


def restore(method, saved):
    method.process_weights_after_loading = saved


def forward(layer, x):
    return x * layer.copies * layer.summary
