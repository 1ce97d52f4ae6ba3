"""What the reload of released vLLM leaves of each quantisation method's storages, release by release."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rebindlint.model import Severity
from rebindlint.runtime.findings import Finding
from rebindlint.runtime.sources.facts import ScenarioFacts
from rebindlint.runtime.sources.report import SourcesReport

pytestmark = pytest.mark.vllm

Reports = Callable[[str], SourcesReport]

MARLIN_GUILTY = ("0.20.2", "0.24.0", "0.25.1", "0.26.0")
RELEASES = ("0.20.2", "0.24.0", "0.25.1", "0.26.0", "0.29.0", "0.33.0")
WORKSPACE = "layer.quant_method.kernel.workspace"
SORT_INDICES = "layer.g_idx_sort_indices"


def scenario(report: SourcesReport, method: str, variant: str) -> tuple[ScenarioFacts, tuple[Finding, ...]]:
    return next(pair for pair in report.judged if (pair[0].method, pair[0].variant) == (method, variant))


def dead(report: SourcesReport, method: str, variant: str) -> set[str]:
    """Paths of the storages that the step reads and that the reload left behind, of a scenario that could be judged."""
    facts, findings = scenario(report, method, variant)
    assert (facts.error, facts.step_error, facts.absent) == ("", "", "")
    assert facts.reads > 0
    errors = [finding for finding in findings if finding.code == "RT101"]
    assert all(finding.severity is Severity.ERROR and finding.reader is not None for finding in errors)
    return {path for finding in errors for path in (finding.tensor, *finding.also)}


def hazards(report: SourcesReport, method: str, variant: str) -> list[Finding]:
    return [finding for finding in scenario(report, method, variant)[1] if finding.severity is not Severity.NOTE]


@pytest.mark.parametrize("release", RELEASES)
def test_marlin_allocated_its_workspace_anew_until_0_26(report: Reports, release: str) -> None:
    guilty = release in MARLIN_GUILTY
    assert dead(report(release), "marlin", "") == ({WORKSPACE} if guilty else set())
    assert dead(report(release), "awq-marlin", "") == ({WORKSPACE} if guilty else set())
    assert dead(report(release), "w4a16", "") == ({"layer.scheme.kernel.workspace"} if guilty else set())
    for variant in ("linear, per tensor", "linear, per block"):
        assert dead(report(release), "fp8-marlin", variant) == ({"layer.workspace"} if guilty else set())


@pytest.mark.parametrize("release", RELEASES)
def test_marlin_sorted_its_group_indices_anew_until_0_26(report: Reports, release: str) -> None:
    if release == "0.33.0":
        facts, findings = scenario(report(release), "marlin", "act-order")
        assert "desc_act" in facts.absent
        assert findings == ()
        return
    guilty = release in MARLIN_GUILTY
    assert dead(report(release), "marlin", "act-order") == ({WORKSPACE, SORT_INDICES} if guilty else set())


@pytest.mark.parametrize("release", RELEASES)
def test_mla_dequantised_kv_b_proj_into_new_memory_until_0_25(report: Reports, release: str) -> None:
    guilty = release in ("0.20.2", "0.24.0", "0.25.1")
    found = dead(report(release), "mla", "FP8 kv_b_proj")
    assert found == ({"layer.W_UK_T", "layer.W_UV"} if guilty else set())
    hooks = {finding.hook for finding in hazards(report(release), "mla", "FP8 kv_b_proj")}
    assert hooks == ({"MLAAttention.process_weights_after_loading"} if guilty else set())


@pytest.mark.parametrize("release", RELEASES)
def test_mla_with_a_plain_kv_b_proj_shows_views_of_it_and_is_safe(report: Reports, release: str) -> None:
    assert hazards(report(release), "mla", "plain kv_b_proj") == []
    assert dead(report(release), "mla", "plain kv_b_proj") == set()


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("method", "variant"), [("fp8", "per tensor"), ("fp8", "per block"), ("moe", ""), ("w8a8-int8", "")]
)
def test_clean_methods(report: Reports, release: str, method: str, variant: str) -> None:
    assert dead(report(release), method, variant) == set()
    assert scenario(report(release), method, variant)[1] == ()


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("method", "variant", "scales"),
    [
        ("fp8-moe", "per tensor", {"_a1", "_a2", "_w1", "_w2"}),
        ("fp8-moe", "per block", {"_w1", "_w2"}),
        ("fp8-marlin", "experts, per tensor", {"_w1", "_w2"}),
        ("fp8-marlin", "experts, per block", {"_w1", "_w2"}),
    ],
)
def test_fp8_experts_keep_a_configuration_that_no_longer_shares_their_scales(
    report: Reports, release: str, method: str, variant: str, scales: set[str]
) -> None:
    found = hazards(report(release), method, variant)
    assert {finding.code for finding in found} == {"RT107"}
    assert {finding.tensor.rsplit(".", 2)[1] for finding in found} == scales
    assert all("_scale" in finding.also[0] for finding in found)  # the experts' own parameter stayed
    assert dead(report(release), method, variant) == set()


@pytest.mark.parametrize("release", ["0.25.1"])
def test_a_finding_names_reader_and_line(report: Reports, release: str) -> None:
    (finding,) = hazards(report(release), "marlin", "")
    assert finding.module == "ReplicatedLinear"
    assert finding.place.filename.endswith("kernels/linear/mixed_precision/marlin.py")
    assert finding.place.text == "self.workspace = marlin_make_workspace_new(device)"
    assert finding.hook == "AutoGPTQLinearMethod.process_weights_after_loading"
    assert finding.reader is not None
    assert (finding.reader.operator, finding.reader.argument) == ("_C.marlin_gemm", "workspace")
    assert finding.old is not None
    assert finding.old.state == "unowned"
    assert finding.static_rules == ("RB101",)


@pytest.mark.parametrize("release", ["0.25.1"])
def test_the_report_says_that_it_speaks_of_addresses_only(report: Reports, release: str) -> None:
    text = report(release).text()
    assert "addresses only" in text
    assert f"vllm {release} in " in text
    assert {record["oracle"] for record in report(release).to_json()} == {"addresses"}
    assert report(release).exit_code == 1
