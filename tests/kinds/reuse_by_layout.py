"""The layout of what is there is compared with the new one, and the contents are copied: a reload has the same layout."""
from dataclasses import fields, is_dataclass

import foreign
import torch


def same_layout(current, new) -> bool:
    if type(current) is not type(new):
        return False
    if isinstance(current, torch.Tensor):
        return current.shape == new.shape and current.stride() == new.stride() and current.dtype == new.dtype
    if is_dataclass(current):
        return all(same_layout(getattr(current, f.name), getattr(new, f.name)) for f in fields(current))
    return bool(current == new)


def copy(current, new) -> None:
    if isinstance(current, torch.Tensor):
        current.copy_(new)
    elif is_dataclass(current):
        for f in fields(current):
            copy(getattr(current, f.name), getattr(new, f.name))


def reuse(current, new):
    if current is None or not same_layout(current, new):
        return new
    copy(current, new)
    return current


def without_copy(current, new):
    return new if current is None or same_layout(current, new) else current


class Kernel:
    def process_weights_after_loading(self, layer):
        packed = foreign.pack(layer.weight.detach(), layer.weight_scale.detach())
        layer.packed = reuse(getattr(layer, "packed", None), packed)
        layer.plain = reuse(getattr(layer, "plain", None), layer.weight.t().contiguous())
        layer.bound = without_copy(getattr(layer, "bound", None), layer.weight.t().contiguous())  # error RB101

    def apply(self, layer, x):
        return foreign.mm(x, layer.packed, layer.plain, layer.bound)
