"""The stand-ins with a wrapper that does to graphs what vLLM's does."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from rebindlint.runtime.capture import NotReplayable
from rebindlint.runtime.vllm.stand_ins import StandInGraph, cuda_graphs_on_cpu

from .plugin_worlds import fake_world

WRAPPER = """
import torch
from vllm.platforms import current_platform
from vllm.other import current_stream, weak_ref_tensors

class Wrapper:
    def __init__(self, function):
        self.function, self.graph, self.output = function, None, None
        self.pool = current_platform.get_global_graph_pool()

    def __call__(self, x):
        if self.graph is None:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self.pool, stream=current_stream()):
                self.output = weak_ref_tensors(self.function(x))
            self.graph = graph
            return self.output
        self.graph.replay()
        return self.output
"""
OTHER = """
def current_stream():
    raise AssertionError("no device")

def weak_ref_tensors(tensors):
    raise AssertionError("no device")
"""


@pytest.fixture
def wrapper(tmp_path: Path) -> Iterator[Any]:
    with fake_world(tmp_path):
        (tmp_path / "vllm/compilation").mkdir()
        (tmp_path / "vllm/compilation/__init__.py").write_text("")
        (tmp_path / "vllm/compilation/cuda_graph.py").write_text(WRAPPER)
        (tmp_path / "vllm/platforms.py").write_text("class Cpu:\n    pass\n\ncurrent_platform = Cpu()\n")
        (tmp_path / "vllm/other.py").write_text(OTHER)
        importlib.invalidate_caches()
        yield importlib.import_module("vllm.compilation.cuda_graph")


def test_a_wrapper_captures_once_and_replays(wrapper: Any) -> None:
    weight, x = torch.full((2, 2), 2.0), torch.ones(1, 2)
    layer = {"w": weight}
    runs = []

    def function(x: torch.Tensor) -> torch.Tensor:
        runs.append(x)
        return x @ layer["w"]

    with cuda_graphs_on_cpu() as graphs:
        wrapped = wrapper.Wrapper(function)
        assert wrapped(x).tolist() == [[4.0, 4.0]]
        x.fill_(2)
        assert wrapped(x).tolist() == [[8.0, 8.0]]
        weight.fill_(1)
        assert wrapped(x).tolist() == [[4.0, 4.0]]
        layer["w"] = torch.zeros(2, 2)
        assert wrapped(x).tolist() == [[4.0, 4.0]]  # the graph holds the old one
    assert len(runs) == 1
    (graph,) = graphs
    assert graph.capture is not None
    addresses = {external.address for external in graph.capture.externals.values()}
    assert addresses == {weight.data_ptr(), x.data_ptr()}
    graph.replay()  # also afterwards


def test_everything_is_as_it_was(wrapper: Any) -> None:
    def contents() -> tuple[Any, ...]:
        platform = importlib.import_module("vllm.platforms")
        return dict(vars(wrapper)), dict(vars(platform.Cpu)), torch.cuda.CUDAGraph, torch.cuda.graph

    before = contents()
    with cuda_graphs_on_cpu():
        assert contents() != before
    assert contents() == before
    with pytest.raises(ValueError, match="ours"), cuda_graphs_on_cpu():
        raise ValueError("ours")
    assert contents() == before


def test_a_capture_that_fails_captures_nothing(wrapper: Any) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("ours")

    with cuda_graphs_on_cpu() as graphs:
        with pytest.raises(ValueError, match="ours"):
            wrapper.Wrapper(function)(torch.ones(1))
        assert torch.ones(1).add(1).item() == 2  # no mode was left behind
    assert graphs == []


def test_a_graph_without_a_capture_cannot_be_replayed() -> None:
    graph = StandInGraph()
    with pytest.raises(NotReplayable, match="nothing was captured"):
        graph.replay()
    assert graph.pool() == (0, 0)
