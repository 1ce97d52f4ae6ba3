"""The path to a real CUDA graph, walked on a CPU: torch.cuda's graph is replaced by recorded operators."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from rebindlint.runtime import cuda_graph
from rebindlint.runtime.capture import NotReplayable, Recording
from rebindlint.runtime.guard import Guard
from rebindlint.runtime.recorder import Recorder

from .reload_models import Layer, RebindingLayer, inputs, load


class StandInGraph:
    recording: Recording

    def replay(self) -> None:
        self.recording.replay()


class StandInStream:
    def wait_stream(self, other: object) -> None:
        """Nothing runs asynchronously here."""


class stand_in_capture:
    """Records like the device does: under the capture, and without knowing of the recorder inside it."""

    liveness: list[bool] = []  # noqa: RUF012

    def __init__(self, graph: StandInGraph, check_input_liveness: bool = False) -> None:
        self.liveness.append(check_input_liveness)
        self._graph = graph
        self._recorder: Any = Recorder(keep_operations=True)

    def __enter__(self) -> None:
        self._recorder.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._recorder.__exit__(*error)
        self._graph.recording = Recording(self._recorder, None)
        if any("waits" in obstacle.reason for obstacle in self._recorder.obstacles):
            raise RuntimeError("operation not permitted when stream is capturing")


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    for name, value in {
        "is_available": lambda: True,
        "Stream": StandInStream,
        "current_stream": StandInStream,
        "stream": lambda stream: contextlib.nullcontext(stream),
        "synchronize": lambda: None,
        "CUDAGraph": StandInGraph,
        "graph": stand_in_capture,
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(cuda_graph, "_DEVICE", "cpu")
    stand_in_capture.liveness.clear()
    return iter([stand_in_capture.liveness])


@pytest.mark.parametrize(("kind", "codes"), [(Layer, []), (RebindingLayer, ["RT101", "RT102"])])
def test_the_same_judgement_through_a_graph(cuda: Iterator[list[bool]], kind: type[Layer], codes: list[str]) -> None:
    layer, x = load(kind), inputs()
    calls: list[int] = []

    def step(model: Any) -> Any:
        calls.append(1)
        return model(x)

    guard = Guard(layer, device="cuda")
    assert guard.capture(step).passed
    assert next(cuda) == [True]  # torch's own check for freed inputs is on where torch has it
    assert len(calls) >= 1 + 3 + 1  # warm-up, warm-up on the side stream, capture
    with guard.reloading():
        layer.load(2)
    report = guard.verify(lambda: load(kind, 2))
    assert report.kind == "CUDA graph"
    assert [finding.code for finding in report.findings] == codes


def test_what_the_stream_refuses_is_not_verifiable(cuda: object) -> None:
    layer, x = load(Layer), inputs()
    guard = Guard(layer, device="cuda")
    assert not guard.capture(lambda model: model(x) * float(x.sum())).passed
    with guard.reloading():
        layer.load(2)
    (finding,) = guard.verify().findings
    assert finding.code == "RT100"
    assert "the step cannot be captured: RuntimeError: operation not permitted" in finding.message


def test_host_memory_is_no_part_of_a_graph(cuda: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_graph, "_DEVICE", "cuda")
    layer, x = load(Layer), inputs()
    capture = cuda_graph.capture_graph(lambda: layer(x))
    assert capture.externals == {}


def test_a_graph_that_fails_to_replay_is_one_line(cuda: object, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = load(Layer), inputs()
    capture = cuda_graph.capture_graph(lambda: layer(x))

    def fail(self: StandInGraph) -> None:
        raise RuntimeError("input was freed\nallocated at ...")

    monkeypatch.setattr(StandInGraph, "replay", fail)
    with pytest.raises(NotReplayable, match=r"replaying the CUDA graph failed: RuntimeError: input was freed$"):
        capture.replay()
