"""What a model's loader calls once everything is loaded is found by what it binds, whatever it is called."""
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(4, 4))

    def forward(self, x):
        return x @ self.weight


class Draft(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(2)])

    def stack_layers(self):
        weights = [layer.weight for layer in self.layers]
        self.stack(weights)

    def stack(self, weights):
        self._stacked = torch.cat(weights, dim=0)  # error RB101

    def forward(self, x):
        return x @ self._stacked


class OtherDraft(Draft):
    def stack(self, weights):
        self._other = torch.stack(weights).contiguous()  # error RB101

    def forward(self, x):
        return x @ self._other


class DraftOfTables(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Layer()

    def make_tables(self):
        self._tables = {  # error RB101
            "plain": self.inner.weight.t().contiguous(),
        }

    def forward(self, x):
        return x @ self._tables["plain"]


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(torch.empty(4))

    def compute_share(self):
        self.register_buffer("share", torch.sigmoid(self.gate.float()), persistent=False)  # error RB103

    def forward(self, x):
        return x * self.share


class Sink(nn.Module):
    def __init__(self):
        super().__init__()
        self.key = None

    def update_key(self, key):
        self.key = key  # error RB101

    def forward(self, x):
        return x + self.key


class WithSink(nn.Module):
    def __init__(self):
        super().__init__()
        self.sink = Sink()
        self.raw_key = nn.Parameter(torch.empty(4))

    def hand_over(self):
        self.sink.update_key(self.raw_key.float() * 2)

    def forward(self, x):
        return self.sink(x)


class Router(nn.Module):
    def __init__(self, factor: float | None):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(4, 4))
        self.factor = factor

    def fold_factor(self):
        if self.factor is None:  # error RB204
            return
        self.weight.mul_(self.factor)
        self.factor = None

    def forward(self, x):
        return x @ self.weight


class RouterToldByItsLoader(nn.Module):
    """Silent: its own weight loader says that the weight is raw again."""

    def __init__(self, factor: float):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(4, 4))
        self.weight.weight_loader = self.load_raw
        self.factor = factor
        self.folded = False

    def load_raw(self, param, loaded_weight):
        param.data.copy_(loaded_weight)
        self.folded = False

    def fold_once(self):
        if not self.folded:
            self.weight.mul_(self.factor)
            self.folded = True

    def forward(self, x):
        return x @ self.weight


class Kept(nn.Module):
    """Silent: bound once, then written into."""

    def __init__(self):
        super().__init__()
        self.inner = Layer()
        self.doubled = None

    def refresh_doubled(self):
        value = self.inner.weight.float() * 2
        if self.doubled is None:
            self.doubled = value
        else:
            self.doubled.copy_(value)

    def forward(self, x):
        return x @ self.doubled


class NotCalled(nn.Module):
    """Silent: no loader calls it."""

    def __init__(self):
        super().__init__()
        self.inner = Layer()

    def begin_profile(self):
        self.profiled = torch.cat([self.inner.weight])

    def forward(self, x):
        return x @ self.profiled


def compute_shares(model: nn.Module):
    for module in model.modules():
        if isinstance(module, Gate):
            module.compute_share()
        fold = getattr(module, "fold_factor", None)
        if callable(fold):
            fold()


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = None

    def make_bias(self):
        self.bias = nn.Parameter(torch.empty(4))  # warning RB103

    def forward(self, x):
        return x + self.bias


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.draft = Draft()
        self.tables = DraftOfTables()
        self.gate = Gate()
        self.sink = WithSink()
        self.router = RouterToldByItsLoader(2.0)
        self.kept = Kept()
        self.head = Head()
        self.loaded = 0

    def note(self, name):
        self.last_loaded = name

    def load_weights(self, weights):
        params = dict(self.named_parameters())
        for name, loaded_weight in weights:
            if name.endswith("head.bias"):
                self.head.make_bias()
            self.note(name)
            params[name].data.copy_(loaded_weight)
        self.draft.stack_layers()
        self.tables.make_tables()
        self.sink.hand_over()
        self.router.fold_once()
        self.kept.refresh_doubled()
        compute_shares(self)
