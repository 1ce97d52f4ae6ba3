"""Whose hook a rebinding is put down to."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from rebindlint.runtime.guard import Guard


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.derived = torch.eye(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.derived

    def _bind(self) -> None:
        self.derived = self.derived * 2

    def process_weights_after_loading(self) -> None:
        self._bind()

    def post_load_weights(self) -> None:
        self.process_weights_after_loading()

    def finalize_weights(self) -> None:
        self._bind()

    def load_weights(self, *, processed: bool = False) -> None:
        self.process_weights_after_loading() if processed else self._bind()


def finalize_layerwise_reload(layer: Layer) -> None:
    layer.process_weights_after_loading()


def process_weights_after_loading(layer: Layer) -> None:
    layer._bind()


def by_nobody(layer: Layer) -> None:
    layer._bind()


def through_a_local_function(layer: Layer) -> None:
    def load_weights() -> None:
        layer.finalize_weights()

    load_weights()


@pytest.mark.parametrize(
    ("reload", "hook"),
    [
        (Layer.process_weights_after_loading, "Layer.process_weights_after_loading"),
        (finalize_layerwise_reload, "Layer.process_weights_after_loading"),
        (Layer.post_load_weights, "Layer.post_load_weights"),
        (Layer.load_weights, "Layer.load_weights"),
        (lambda layer: layer.load_weights(processed=True), "Layer.process_weights_after_loading"),
        (through_a_local_function, "Layer.finalize_weights"),
        (process_weights_after_loading, "process_weights_after_loading"),
        (by_nobody, "Layer._bind"),
    ],
    ids=["hook", "driver", "outermost", "loading", "hook while loading", "local function", "function", "no hook"],
)
def test_the_hook_is_the_method_that_the_reload_calls(reload: Callable[[Layer], object], hook: str) -> None:
    layer = Layer()
    guard = Guard(layer)
    guard.capture(lambda model: model(torch.ones(1, 2)))
    with guard.reloading():
        reload(layer)
    (finding,) = guard.verify().with_code("RT101")
    assert finding.hook == hook
