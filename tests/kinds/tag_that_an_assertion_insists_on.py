"""Of two tags the code insists on one. Which one there is and what it says nobody here tells, but none is missing."""
import torch
from torch.nn import Parameter


def reorder(p):
    rows = getattr(p, "row_dim", None)
    columns = getattr(p, "column_dim", None)
    if rows is None:
        assert columns is not None, "either tag must be set"
        rows = (columns + 1) % 2
    if columns is None:
        assert rows is not None, "either tag must be set"
        columns = (rows + 1) % 2
    p.data = p.data.permute(rows, columns)


def twin(p):
    made = torch.Tensor._make_subclass(type(p), p.data, False)
    made.__dict__.update(p.__dict__)
    return made


class Method:
    def create_weights(self, layer):
        layer.register_parameter("scales", Parameter(torch.empty(4, 4)))

    def process_weights_after_loading(self, layer):
        def transform(p):
            reorder(p)
            if self.eight_bits:
                layer.register_parameter("factor", Parameter(p.data.max()))  # warning RB103
            else:
                layer.factor = None
            return p

        if self.config.scaled:
            layer.scales = Parameter(transform(twin(layer.scales)).data)  # warning RB103

    def apply(self, layer, x):
        return torch.ops.lib.mm(x, layer.scales, layer.factor)
