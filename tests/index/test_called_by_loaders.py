"""What models do while they load weights: which functions are hooks because a loader calls them and they bind something."""

from __future__ import annotations

from pathlib import Path

from executed import index_of

from rebindlint.index import find_hooks

DRAFT = """
from torch import nn

class Draft(nn.Module):
    def stack_layers(self):
        self.note()
        self.build()

    def build(self):
        self.stacked = self.layer.weight.t()

    def note(self):
        self.built = True

    def begin(self):
        self.table = self.layer.weight.t()

class Lookup:
    def refresh(self):
        self.table = make()

class Other(Draft):
    def build(self):
        self.others = self.layer.weight.t()
"""
MODEL = """
from torch import nn
from parts import Draft, Lookup

class Model(nn.Module):
    def load_weights(self, weights):
        for name, weight in weights:
            self.take(name, weight)
            self.put(name, weight)
        self.draft.stack_layers()
        self.lookup.refresh()
        self.done = True

    def take(self, name, weight):
        self.bias = nn.Parameter(weight)

    def put(self, name, weight):
        self.weight.data.copy_(weight)
"""
BINDING = """
from torch import nn

class Model(nn.Module):
    def load_weights(self, weights):
        for name, weight in weights:
            if name == "map":
                self.map = weight

class Plain(nn.Module):
    def load_weights(self, weights):
        self.loaded = True
        self.count: int = 0
        self.pending = {}
        for name, weight in weights:
            self.params[name].data.copy_(weight)

class Reader:
    def load_weights(self, path):
        self.file = open(path)
"""


def test_what_a_loader_calls_is_looked_for_in_its_file_and_in_what_that_imports(tmp_path: Path) -> None:
    index = index_of(tmp_path, **{"draft": DRAFT, "parts/__init__": "from draft import Draft, Lookup", "model": MODEL})
    found = {hook.name: hook.from_loading for hook in find_hooks(index)}
    assert found == {
        "Draft.stack_layers": True,
        "Other.stack_layers": True,
        "Draft.build": True,
        "Other.build": True,
        "Model.take": False,
    }


def test_a_file_that_the_loader_does_not_import_has_nothing_of_it(tmp_path: Path) -> None:
    index = index_of(tmp_path, draft=DRAFT, model=MODEL.replace("from parts import Draft, Lookup", ""))
    assert {hook.name for hook in find_hooks(index)} == {"Model.take"}


def test_a_loader_that_binds_more_than_flags_is_a_hook_itself(tmp_path: Path) -> None:
    index = index_of(tmp_path, model=BINDING)
    assert {hook.name: hook.from_loading for hook in find_hooks(index)} == {"Model.load_weights": True}
