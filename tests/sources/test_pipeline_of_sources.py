"""The whole way on a tree of ours: a process of its own, stand-ins, reload, judgement. Needs torch and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rebindlint.model import RebindlintError, Severity
from rebindlint.runtime.command import verify
from rebindlint.runtime.sources.launch import run_tree
from rebindlint.runtime.sources.report import SourcesReport, verify_sources

from .fake_tree import write_tree

IN_PLACE = "self.workspace = self.workspace.zero_() if hasattr(self, 'workspace') else torch.zeros(4)"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(verify, [str(argument) for argument in arguments])


def reported(tree: Path, *methods: str, time_limit: float = 60) -> SourcesReport:
    return verify_sources(tree, methods, time_limit=time_limit)


@pytest.fixture(scope="module")
def guilty(tmp_path_factory: pytest.TempPathFactory) -> SourcesReport:
    """A hook that binds a new tensor, one that nobody reads, and one that was another name for a parameter."""
    process = "self.workspace = torch.zeros(4); self.unread = torch.zeros(3); self.alias = layer.scales.data"
    tree = write_tree(tmp_path_factory.mktemp("guilty"), process=process)
    before = sorted(tree.rglob("*"))
    report = reported(tree, "marlin")
    assert sorted(tree.rglob("*")) == before  # nothing is written into a tree
    return report


def test_a_rebinding_hook_is_convicted_with_reader_and_line(guilty: SourcesReport) -> None:
    (finding,) = (finding for finding in guilty.findings if finding.code == "RT101")
    assert finding.severity is Severity.ERROR
    assert finding.tensor == "layer.quant_method.kernel.workspace"
    assert finding.place.text.startswith("self.workspace = torch.zeros(4)")
    assert "MarlinKernel.process" in [site.function for site in finding.rebound]
    assert finding.hook == "Method.process_weights_after_loading"
    assert finding.reader is not None
    assert (finding.reader.operator, finding.reader.argument) == ("_C.marlin_gemm", "workspace")
    assert guilty.exit_code == 1
    facts = guilty.judged[0][0]
    assert (facts.tensors, facts.storages, facts.reads) == (6, 5, 2)
    assert facts.classes == ("ReplicatedLinear", "Method", "MarlinKernel")


def test_what_the_step_does_not_read_is_a_note(guilty: SourcesReport) -> None:
    (finding,) = (finding for finding in guilty.findings if finding.code == "RT109")
    assert (finding.severity, finding.tensor) == (Severity.NOTE, "layer.quant_method.kernel.unread")


def test_a_broken_alias(guilty: SourcesReport) -> None:
    (finding,) = (finding for finding in guilty.findings if finding.code == "RT107")
    assert finding.tensor == "layer.quant_method.kernel.alias"
    assert finding.also == ("layer.scales",)


def test_the_json_report_has_the_keys_of_every_runtime_finding(guilty: SourcesReport) -> None:
    records = guilty.to_json()
    assert {(record["method"], record["oracle"]) for record in records} == {("marlin", "addresses")}
    (record,) = (record for record in records if record["code"] == "RT101")
    assert record["read_by"]["operator"] == "_C.marlin_gemm"
    assert record["old_storage"]["state"] == "unowned"
    assert record["reload"] == ["layerwise"]


def test_a_hook_that_writes_in_place_is_acquitted(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, process=IN_PLACE) / "vllm"  # the package itself may be named
    result = run("--sources", tree, "--methods", "marlin")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "addresses only" in result.output
    assert "Nothing found: every storage that the steps read is still in its place." in result.output
    assert "marlin (act-order) not in this release: desc_act is not supported" in result.output


def test_what_a_step_that_stopped_might_read_is_a_warning(tmp_path: Path) -> None:
    report = reported(write_tree(tmp_path, apply="raise NotImplementedError('no such kernel')"), "marlin")
    (finding,) = report.findings
    assert (finding.code, finding.severity) == ("RT101", Severity.WARNING)
    assert "not known, because the step stopped early (NotImplementedError: no such kernel)" in finding.message
    assert "note: marlin: its step stopped early" in report.text()


def test_a_method_that_cannot_be_run_beside_one_that_can(tmp_path: Path) -> None:
    report = reported(write_tree(tmp_path, process=IN_PLACE), "marlin", "awq-marlin")
    (finding,) = report.findings
    assert (finding.code, finding.severity) == ("RT100", Severity.ERROR)
    assert finding.message == (
        "awq-marlin could not be judged: vllm 9.9.9 does not have it "
        "(it has no vllm.model_executor.layers.quantization.auto_awq:AutoAWQConfig)"
    )
    assert report.exit_code == 1


def test_nothing_that_could_be_run_exits_with_two(tmp_path: Path) -> None:
    result = run("--sources", write_tree(tmp_path), "--methods", "awq-marlin", "--output-format", "json")
    assert result.exit_code == 2
    assert [record["code"] for record in json.loads(result.stdout)] == ["RT100"]
    assert result.stderr == "rebindlint: not one of the layers could be reloaded, so nothing was judged\n"


def test_a_reload_that_raises_is_not_verifiable(tmp_path: Path) -> None:
    process = "assert not hasattr(self, 'workspace'), 'twice'; self.workspace = torch.zeros(4)"
    report = reported(write_tree(tmp_path, process=process), "marlin")
    (finding,) = report.findings
    assert finding.message.endswith("the layerwise reload did not finish: AssertionError: twice")
    assert finding.place.function == "Method.process_weights_after_loading"
    assert report.exit_code == 2


def test_a_process_that_dies_costs_one_method(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, process=IN_PLACE)
    awq = tree / "vllm" / "model_executor" / "layers" / "quantization" / "auto_awq.py"
    awq.write_text("import os, sys\nsys.stderr.write('the last words\\n')\nsys.stderr.flush()\nos.abort()\n")
    report = reported(tree, "awq-marlin", "marlin")
    (finding,) = report.findings
    assert finding.message == "awq-marlin could not be judged: the process was ended by SIGABRT: the last words"
    assert [facts.title for facts, _ in report.judged] == ["awq-marlin", "marlin", "marlin (act-order)"]
    assert report.exit_code == 1


def test_a_process_that_dies_does_not_cost_the_other_variants(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, process="os.abort()")
    report = reported(tree, "marlin")
    assert [(facts.title, facts.error, facts.absent) for facts, _ in report.judged] == [
        ("marlin", "the process was ended by SIGABRT", ""),
        ("marlin (act-order)", "", "desc_act is not supported"),
    ]
    assert report.exit_code == 2


def test_a_process_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child = tmp_path / "child.py"
    child.write_text(
        """
import json, sys, time
with open(json.loads(sys.argv[1])["results"], "a") as results:
    print('{"event": "imported", "version": "1", "torch": "2"}', file=results)
    print('{"event": "begin", "method": "awq-marlin", "variant": ""}', file=results, flush=True)
    print('{"event": "scen', end="", file=results, flush=True)
time.sleep(600)
"""
    )
    monkeypatch.setattr("rebindlint.runtime.sources.launch._CHILD", child)
    outcome = run_tree(write_tree(tmp_path / "tree"), ["awq-marlin", "marlin"], time_limit=5)
    assert [facts.error for facts in outcome.facts] == [
        "the time limit ran out",
        *["not all of it was run: the time limit ran out"] * 2,
    ]
    assert 5 <= outcome.seconds < 30


def test_a_tree_that_cannot_be_imported(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, __init__="import no_such_dependency_of_vllm\n")
    with pytest.raises(RebindlintError) as failure:
        reported(tree, "marlin")
    text = str(failure.value)
    assert text.startswith(f"cannot import vllm from {tree}: ModuleNotFoundError: No module named 'no_such_dependency")
    assert text.endswith("(it needs vLLM's dependencies; --python names an environment that has them)")


def test_a_tree_that_ends_the_process_while_it_is_imported(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, __init__="import os\nos._exit(7)\n")
    with pytest.raises(RebindlintError, match=r"cannot import vllm from .*: the process ended with status 7"):
        reported(tree, "marlin")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "marlin,martian"], "rebindlint: unknown method 'martian'; known are marlin,"),
        (["--python", "/no/such/python"], "rebindlint: cannot run /no/such/python: No such file or directory"),
        (["--time-limit", "0"], "Invalid value for '--time-limit'"),
        (["--demo"], "say either --demo or --case"),
    ],
)
def test_bad_input_is_one_line_and_two(tmp_path: Path, arguments: list[str], message: str) -> None:
    result = run("--sources", write_tree(tmp_path), *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_what_is_no_tree_is_one_line_and_two(tmp_path: Path) -> None:
    result = run("--sources", tmp_path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        f"rebindlint: {tmp_path} holds no vllm/__init__.py: --sources wants an unpacked or checked-out vLLM\n"
    )
    assert f"{tmp_path / 'missing'} is no folder" in run("--sources", tmp_path / "missing").stderr


def test_another_kernel_than_the_method_is_about_is_not_verifiable(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, process=IN_PLACE)
    module = tree / "vllm" / "model_executor" / "layers" / "quantization" / "auto_gptq.py"
    module.write_text(module.read_text().replace("MarlinKernel", "Exllama"))
    (finding,) = reported(tree, "marlin").findings
    assert finding.code == "RT100"
    assert finding.message.endswith("the release runs it on ReplicatedLinear, Method, Exllama and not on Marlin")
