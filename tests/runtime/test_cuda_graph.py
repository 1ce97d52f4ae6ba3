"""The same judgements with a real CUDA graph. Needs a CUDA device."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rebindlint.runtime.guard import Guard

from .reload_models import KernelLayer, Layer, RebindingLayer, StaleLayer, inputs

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


def on_device(kind: type[Layer], seed: int) -> Layer:
    return kind().to("cuda").load(seed)


def verified(kind: type[Layer], **options: Any) -> Any:
    layer, x = on_device(kind, 1), inputs().to("cuda")
    guard = Guard(layer)
    tested = guard.capture(lambda model: model(x))
    assert tested.passed, tested.reason
    with guard.reloading(**options):
        layer.load(2)
    report = guard.verify(lambda: on_device(kind, 2))
    guard.close()
    return report


@pytest.mark.parametrize("kind", [RebindingLayer, KernelLayer])
def test_a_real_graph_convicts_the_guilty(kind: type[Layer]) -> None:
    report = verified(kind)
    assert report.kind == "CUDA graph"
    assert [finding.code for finding in report.findings] == ["RT101", "RT102"]
    (dead,) = report.with_code("RT101")
    assert dead.old.state == "unowned"
    assert "100% of the replay's result is NaN" in dead.evidence[0]
    assert dead.reader.operator == "aten.mm.default"


def test_a_real_graph_acquits_the_clean() -> None:
    assert verified(Layer).findings == ()


def test_a_stale_weight_is_found_by_the_fresh_load() -> None:
    assert {finding.code for finding in verified(StaleLayer).findings} == {"RT104"}


def test_a_synchronisation_cannot_be_captured() -> None:
    layer, x = on_device(Layer, 1), inputs().to("cuda")
    guard = Guard(layer)
    assert not guard.capture(lambda model: model(x) * float(x.sum())).passed
    with guard.reloading():
        layer.load(2)
    (finding,) = guard.verify().findings
    assert (finding.code, "cannot be captured" in finding.message) == ("RT100", True)


def test_recorded_operators_and_the_graph_hold_the_same() -> None:
    layer, x = on_device(Layer, 1), inputs().to("cuda")
    numbers = []
    for device in ("cpu", "cuda"):
        guard = Guard(layer, device=device)
        guard.capture(lambda model: model(x))
        assert guard._captured is not None
        numbers.append(set(guard._captured.capture.externals))
        guard.close()
    assert numbers[0] == numbers[1]
