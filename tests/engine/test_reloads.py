"""The released engine's reloads: clean ones are silent, guilty ones convicted by the oracle that can see them."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import PARTIAL

REPLAY = "replayed step against eager step after the reload"
RESULT = "result of the step against a fresh load"
LOGITS = "logits against a fresh load"


def errors(outcome: dict[str, Any]) -> list[dict[str, Any]]:
    assert "error" not in outcome, outcome
    return [finding for finding in outcome["findings"] if finding["severity"] == "error"]


@pytest.mark.parametrize(
    "name",
    ["llama", "gptq", "awq", "mla", "mla plain", "llama plain, load-and-process", "llama, weight-transfer"],
)  # fmt: skip
def test_a_clean_reload_is_silent(in_one_process: dict[str, Any], name: str) -> None:
    outcome = in_one_process[name]
    assert errors(outcome) == []
    assert outcome["exit_code"] == 0
    assert {code["code"] for code in outcome["findings"]} <= {"RT109"}, "only notes about tensors that nobody reads"
    assert outcome["operators"] > 100, "the step was looked into"
    assert all(outcome["comparisons"][subject] for subject in (REPLAY, RESULT, LOGITS))


def test_skipped_prepacking_of_experts_is_seen_by_the_fresh_load(in_one_process: dict[str, Any]) -> None:
    """Same storage, new values, wrong layout: addresses and replay cannot see it."""
    outcome = in_one_process["mixtral"]
    found = errors(outcome)
    assert {finding["code"] for finding in found} == {"RT104"}
    weights = {finding["tensor"].rpartition(".")[2] for finding in found if finding["tensor"]}
    assert weights == {"w13_weight", "w2_weight"}
    readers = {finding["read_by"]["operator"] for finding in found if finding["read_by"]}
    assert readers == {"_C.cpu_fused_moe.default"}
    assert outcome["comparisons"][REPLAY]
    assert not outcome["comparisons"][RESULT]


def test_skipped_prepacking_shows_with_the_same_weights_too(in_one_process: dict[str, Any]) -> None:
    codes = {finding["code"] for finding in in_one_process["mixtral, same weights"]["findings"]}
    assert {"RT104", "RT106"} <= codes


def test_the_stale_handle_of_tied_embeddings_is_seen_in_the_logits_alone(in_one_process: dict[str, Any]) -> None:
    outcome = in_one_process["llama-tied"]
    (finding,) = errors(outcome)
    assert finding["code"] == "RT104"
    assert finding["compared"]["subject"] == LOGITS
    assert "`logits_processor`" in finding["message"]
    assert any("model.lm_head.cpu_linear" in line for line in finding["evidence"])
    assert outcome["comparisons"][REPLAY]
    assert outcome["comparisons"][RESULT]


def test_uninitialised_memory_after_a_partial_reload_is_seen_by_the_filling(in_one_process: dict[str, Any]) -> None:
    outcome = in_one_process["gptq-partial"]
    by_code = {finding["code"]: finding for finding in errors(outcome) if finding["tensor"]}
    assert by_code.keys() == {"RT104", "RT105"}
    assert {finding["tensor"] for finding in by_code.values()} == {f"model.{PARTIAL}"}
    assert any("materialize_meta_tensor" in line for line in by_code["RT105"]["evidence"])
    assert any(PARTIAL in note for note in outcome["notes"])
    assert not outcome["comparisons"][RESULT]


def test_a_reload_that_fails_half_way_is_one_line(in_one_process: dict[str, Any]) -> None:
    """The packed linear layers have let go of their weights, so that the trainer's path cannot write into them."""
    outcome = in_one_process["llama, load-and-process"]
    assert outcome["error"].startswith("the reload failed, the model may be half reloaded: ")
    assert "\n" not in outcome["error"]
    assert outcome["cause"] not in ("NoneType", "RebindlintError"), "the engine's own exception is the cause"


def test_a_fresh_load_that_runs_out_of_memory_leaves_the_other_judgements(in_one_process: dict[str, Any]) -> None:
    outcome = in_one_process["llama, without memory"]
    (finding,) = errors(outcome)
    assert finding["code"] == "RT100"
    assert finding["message"].startswith("the fresh load failed: OutOfMemoryError: tried to allocate 30.00 GiB; ")
    assert outcome["comparisons"] == {REPLAY: True}


def test_nothing_is_left_behind(in_one_process: dict[str, Any]) -> None:
    assert in_one_process["left behind"] == []
