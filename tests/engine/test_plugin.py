"""The plugin in a vLLM that somebody else runs: inert, watching, in one process and in several."""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from .conftest import HERE, Engine

ROOT = HERE.parents[1]


@pytest.fixture(scope="session")
def installed(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """The engine's environment as if rebindlint were installed in it, with its entry points."""
    folder = tmp_path_factory.mktemp("installed") / "rebindlint-0.1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: rebindlint\nVersion: 0.1.0\n")
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()) for group, points in groups.items()]
    (folder / "entry_points.txt").write_text("".join(lines))
    variables = {
        **engine.variables,
        "PYTHONPATH": os.pathsep.join((str(folder.parent), engine.variables["PYTHONPATH"], str(HERE))),
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_ALLOW_INSECURE_SERIALIZATION": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "OMP_NUM_THREADS": "1",
    }
    return replace(engine, variables=variables)


class Run:
    """One engine's life. ``reports`` are those of its ranks."""

    def __init__(
        self, engine: Engine, folder: Path, checkpoint: Path, calls: list[str], mode: str, **request: Any
    ) -> None:
        folder.mkdir(exist_ok=True)
        environment: dict[str, str] = request.pop("environment", {})
        prefix: list[str] = request.pop("prefix", [])
        request |= {"model": str(checkpoint / "v1"), "reload_from": str(checkpoint / "v2"), "calls": calls}
        (folder / "request.json").write_text(json.dumps(request))
        watched = {"REBINDLINT": mode, "REBINDLINT_OUT": str(folder / "out")} if mode else {}
        command = [*prefix, str(HERE / "plugged.py"), str(folder / "request.json")]
        variables = {**engine.variables, **watched, **environment}
        done = replace(engine, variables=variables).run(command, cwd=folder)
        assert "RESULT " in done.stdout, done.stderr[-4000:]
        outcome = json.loads(done.stdout.rpartition("RESULT ")[2].splitlines()[0])
        self.answers: list[list[int]] = outcome["answers"]
        self.results: dict[str, Any] = outcome["results"]
        self.failed: str = outcome["failed"]
        self.modules: list[str] = outcome["modules"]
        self.patched: list[str] = outcome["patched"]
        self.stderr, self.returncode = done.stderr, done.returncode
        self.reports = [json.loads(path.read_text()) for path in sorted((folder / "out").glob("*.rank.json"))]
        self.reports.sort(key=lambda report: report["rank"])

    @property
    def said(self) -> list[str]:
        return [line for line in self.stderr.splitlines() if line.startswith("rebindlint:")]


def errors(reload: dict[str, Any]) -> list[str]:
    return sorted(finding["code"] for finding in reload["findings"] if finding["severity"] == "error")


PATHS = ["reload_weights", "load-and-process", "weight-transfer"]


@pytest.fixture(scope="module")
def plain(installed: Engine, checkpoints: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """What the engine answers when nobody watches."""
    return Run(installed, tmp_path_factory.mktemp("plain"), checkpoints / "llama", PATHS, "", plain_linears=True)


@pytest.fixture(scope="module")
def watched(installed: Engine, checkpoints: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(
        installed, tmp_path_factory.mktemp("watched"), checkpoints / "llama", PATHS, "raise",
        plain_linears=True, attributes=True,
    )  # fmt: skip


def test_unasked_it_is_one_import(plain: Run) -> None:
    used_by_the_script = {"rebindlint.runtime.vllm.reload", "rebindlint.runtime.vllm.transfer"}
    assert "rebindlint.runtime.vllm.plugin" in plain.modules
    assert not {"rebindlint.runtime.vllm.process", "rebindlint.runtime.guard"} & set(plain.modules)
    assert {n for n in plain.modules if n.startswith("rebindlint.runtime.vllm.")} <= used_by_the_script | {
        "rebindlint.runtime.vllm.plugin"
    }
    assert (plain.reports, plain.said) == ([], [])


def test_the_answers_are_those_of_an_unwatched_engine(plain: Run, watched: Run) -> None:
    assert watched.answers == plain.answers
    assert watched.answers[0] != watched.answers[1]
    assert watched.answers[1] == watched.answers[2] == watched.answers[3]


def test_between_reloads_nothing_but_the_hook_points_is_patched(watched: Run) -> None:
    """Those were there before the first reload."""
    assert watched.patched == []


def test_a_clean_engine_is_clean_by_every_path(watched: Run) -> None:
    (report,) = watched.reports
    assert [(reload["opened_by"], reload["protocol"]) for reload in report["reloads"]] == [
        ("reload_weights", "layerwise"),
        ("load_weights", "direct"),
        ("start_weight_update", "layerwise"),
    ]
    for reload in report["reloads"]:
        assert (reload["state"], errors(reload)) == ("judged", []), reload["findings"]
        assert "replayed step against eager step after the reload (exact): equal" in reload["comparisons"]
        assert reload["capture"]["operators"] > 100
    assert report["missing_hook_points"] == []
    assert report["problems"] == []
    assert (report["rank"], report["world_size"], report["versions"]["vllm"]) == (0, 1, "0.32.0")
    assert watched.said == []


def test_the_engines_own_transfer_and_an_update_over_a_sleep(
    installed: Engine, checkpoints: Path, tmp_path: Path
) -> None:
    """A CPU frees no memory when it sleeps, and shares none by handles; the calls are the engine's."""
    calls = ["through ipc", "over a sleep"]
    run = Run(installed, tmp_path, checkpoints / "llama", calls, "raise", plain_linears=True)
    assert (run.failed, run.said) == ("", [])
    assert run.answers[0] != run.answers[1] == run.answers[2]
    through_ipc, over_a_sleep = run.reports[0]["reloads"]
    assert through_ipc["calls"][0] == "start_weight_update"
    assert over_a_sleep["calls"][:2] == ["sleep", "wake_up"]
    for reload in (through_ipc, over_a_sleep):
        assert (reload["state"], reload["protocol"], errors(reload)) == ("judged", "layerwise", []), reload


def test_an_engine_as_it_is_released_is_clean(installed: Engine, checkpoints: Path, tmp_path: Path) -> None:
    calls = ["rebindlint_snapshot", "reload_weights", "rebindlint_verify"]
    run = Run(installed, tmp_path, checkpoints / "llama", calls, "report", extension=True)
    assert run.failed == ""
    assert run.results["rebindlint_snapshot"] == [{"rank": 0, "captured": True, "note": ""}]
    (verified,) = run.results["rebindlint_verify"]
    assert (verified["opened_by"], verified["state"], errors(verified)) == ("snapshot", "judged", [])
    assert "reload_weights" in verified["calls"]


def test_the_extension_needs_no_plugin(installed: Engine, checkpoints: Path, tmp_path: Path) -> None:
    calls = ["rebindlint_capture", "rebindlint_snapshot", "reload_weights", "rebindlint_verify"]
    run = Run(installed, tmp_path, checkpoints / "mla", calls, "", extension=True, rebinding=True, plain_linears=True)
    (verified,) = run.results["rebindlint_verify"]
    assert errors(verified) == ["RT101"] * 4 + ["RT102"]
    assert run.reports == []


def test_a_guilty_engine_is_convicted_and_goes_on(installed: Engine, checkpoints: Path, tmp_path: Path) -> None:
    run = Run(
        installed, tmp_path, checkpoints / "mla", ["reload_weights"], "report", rebinding=True, plain_linears=True,
        prefix=["-m", "rebindlint", "run", "--out", str(tmp_path / "out"), "--", str(installed.python)],
    )  # fmt: skip
    assert (run.failed, run.returncode, len(run.answers)) == ("", 0, 2)
    (reload,) = run.reports[0]["reloads"]
    assert errors(reload) == ["RT101"] * 4 + ["RT102"]
    dead = [finding for finding in reload["findings"] if finding["code"] == "RT101"]
    for finding in dead:
        assert finding["read_by"]["operator"] == "aten.bmm.out"
        assert finding["rebound_at"]["filename"].endswith("rebinding_mla.py")
        assert any("100% of the replay's result is NaN" in evidence for evidence in finding["evidence"])
    assert "seen by rank 0 in reload 1" in run.stderr
    assert "Found 5 errors" in run.stderr


def test_a_fresh_load_sees_what_no_address_shows(installed: Engine, checkpoints: Path, tmp_path: Path) -> None:
    """Beside a model of the checkpoint that was reloaded; weights that come from a trainer are those of none."""
    run = Run(
        installed, tmp_path, checkpoints / "llama-tied", ["reload_weights", "weight-transfer"], "report",
        environment={"REBINDLINT_FRESH": "1"},
    )  # fmt: skip
    assert (run.failed, run.said) == ("", [])
    of_checkpoint, of_trainer = run.reports[0]["reloads"]
    (finding,) = [finding for finding in of_checkpoint["findings"] if finding["severity"] == "error"]
    assert finding["code"] == "RT104"
    assert finding["message"].startswith("the logits differ from those of a fresh load of the same weights")
    assert "result of the step against a fresh load (exact): equal" in of_checkpoint["comparisons"]
    assert (of_trainer["state"], errors(of_trainer)) == ("judged", [])
    assert "not compared with a fresh load: the weights came from no checkpoint" in of_trainer["notes"]


def test_a_guilty_engine_is_stopped_where_asked(installed: Engine, checkpoints: Path, tmp_path: Path) -> None:
    run = Run(installed, tmp_path, checkpoints / "mla", ["reload_weights"], "raise", rebinding=True, plain_linears=True)
    assert run.failed.startswith(
        "RebindlintError: reload 1 (reload_weights) on rank 0 is not safe: RT101 `model.model.layers.0."
    )
    assert run.reports[0]["reloads"][0]["state"] == "judged"


def test_a_broken_reload_stays_the_engines_affair(installed: Engine, checkpoints: Path, tmp_path: Path) -> None:
    call = "broken, then whole"
    run = Run(installed, tmp_path, checkpoints / "llama", [call], "report", plain_linears=True)
    assert run.failed == ""
    first, second = run.reports[0]["reloads"]
    assert (first["state"], second["state"]) == ("failed", "judged")
    assert first["error"].startswith(f"{run.results[call]}: ")
    assert "RT100" in errors(first)
    assert run.reports[0]["problems"] == []


def test_two_ranks_in_two_processes(installed: Engine, checkpoints: Path, tmp_path: Path) -> None:
    cores = sorted(os.sched_getaffinity(0))
    binding = f"{cores[0]}|{cores[1]}" if len(cores) > 1 else "nobind"
    run = Run(
        installed, tmp_path, checkpoints / "mla", ["reload_weights", "die in a reload"], "report", ranks=2,
        environment={"VLLM_CPU_OMP_THREADS_BIND": binding},
    )  # fmt: skip
    assert [report["rank"] for report in run.reports] == [0, 1]
    assert len({report["pid"] for report in run.reports}) == 2
    assert len({report["engine"] for report in run.reports}) == 1
    for report in run.reports:
        assert report["world_size"] == 2
        reload = report["reloads"][0]
        assert (reload["state"], errors(reload)) == ("judged", []), (reload, report["problems"])
        assert reload["capture"]["operators"] > 100
    assert len(run.answers) == 2
    assert run.reports[1]["reloads"][1]["state"] == "running"
    merged = installed.run(["-m", "rebindlint", "report", str(tmp_path / "out")])
    assert merged.returncode == 2
    assert "rank 1 of 2 did not get through reload 2 (reload_weights)" in merged.stderr
    assert "rank 0 of 2: reload 1 (reload_weights) judged: " in merged.stdout
