"""A condition on one part of what a callee gives: whether it is None was decided by a branch two calls down, on another one's word."""

import torch
from torch.nn import Parameter


def convert(kind, layer, options, form):
    if kind == "packed":
        return _packed(layer.weight, layer.scales, options, form)
    return layer.weight.t().contiguous(), layer.scales, None, None


def _packed(weight, scales, options, form):
    tile = 16 if options.wide else 8
    order = "rows" if options.rows else "columns"
    if options.split:
        tile = tile * 2
    else:
        tile = tile + 1
    if options.deep:
        order = order + "1"
    else:
        order = order + "2"
    if options.late:
        tile = tile - 3
    else:
        tile = tile - 2
    if options.long:
        order = order * 2
    else:
        order = order * 3
    if options.thin:
        tile = tile * 3
    else:
        tile = tile * 5
    narrow = form is not None and form.width == 1 and not form.real
    global_scale = None
    unused = None
    packed = torch.ops.lib.pack(weight, tile, order)
    if narrow:
        scales, global_scale = torch.ops.lib.split_scales(scales)
    return packed, scales, global_scale, unused


class Method:
    def __init__(self, config):
        self.config = config
        self.kind = config.kind
        self.form = config.form

    def process_weights_after_loading(self, layer):
        weight, scales, global_scale, unused = convert(self.kind, layer, self.config, self.form)
        layer.packed = Parameter(weight)  # warning RB103
        if global_scale is not None:
            layer.register_parameter("global_scale", Parameter(global_scale))  # warning RB103
        if unused is not None:
            layer.register_parameter("unused", Parameter(unused))

    def apply(self, layer, x):
        return x @ layer.packed * layer.global_scale * layer.unused
