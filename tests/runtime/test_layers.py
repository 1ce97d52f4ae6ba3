from __future__ import annotations

import pytest

from rebindlint.model import Protocol, RebindlintError
from rebindlint.runtime.findings import make_finding
from rebindlint.runtime.report import Report
from rebindlint.runtime.sites import Site
from rebindlint.runtime.vllm.layers import must_match, restricted

PATHS = [
    "model.model.layers.0.mlp.weight",
    "model.model.layers.1.mlp.weight",
    "runner.kv_caches[0]",
    "metadata.layers.7.slots",  # not the model's
]


@pytest.mark.parametrize("layers", ["model.layers.0*", "model.layers.1", "model.model.layers.1.*", "*.mlp", "runner.*"])
def test_a_pattern_that_matches(layers: str) -> None:
    must_match(layers, PATHS)


@pytest.mark.parametrize("layers", ["layers.7*", "model.layers.2*", "layers.0"])
def test_a_pattern_that_matches_nothing_is_told_so_with_a_name_that_would(layers: str) -> None:
    with pytest.raises(RebindlintError) as caught:
        must_match(layers, PATHS)
    assert str(caught.value) == f"no tensor of the model matches --layers {layers}; a name is model.layers.0.mlp.weight"


def test_findings_of_other_layers_are_counted_and_left_out() -> None:
    site = Site("a.py", 1, 1, 1, 1, "f")
    findings = [make_finding("RT109", "moved", site, Protocol.DIRECT, tensor=path) for path in [*PATHS[:2], ""]]
    report = restricted(Report(tuple(findings)), "model.layers.1*")
    assert [finding.tensor for finding in report.findings] == [PATHS[1], ""]
    assert report.notes == ("left out: 1 finding about other layers than model.layers.1*",)
