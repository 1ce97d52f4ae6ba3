from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rebindlint.runtime.launch import environment_for

from .fake_vllm import write_fake_vllm

ROOT = Path(__file__).parents[2]
TRAIN = """
import os, sys, types
from importlib.metadata import entry_points
from vllm.v1.worker.gpu_worker import Worker  # an engine loads plugins before that; here they come just after
(plugin,) = entry_points(group="vllm.general_plugins", name="rebindlint")
plugin.load()()
import torch
scheduled = types.SimpleNamespace(num_scheduled_tokens={"a": 1, "b": 1}, total_num_scheduled_tokens=2)
worker = Worker(types.SimpleNamespace(instance_id="e"), 0, safe=sys.argv[1] == "safe")
worker.load_model()
worker.execute_model(scheduled)
worker.reload_weights([("weight", torch.ones(4, 4))])
print("trained")
sys.exit(7)
"""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "rebindlint", "run", *arguments]


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", **environment}
    return subprocess.run(command(*arguments), cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    write_fake_vllm(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)
    installed = tmp_path / "rebindlint-0.1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: rebindlint\nVersion: 0.1.0\n")
    (installed / "entry_points.txt").write_text(
        "[vllm.general_plugins]\nrebindlint = rebindlint.runtime.vllm.plugin:register\n"
    )
    return tmp_path


def test_the_command_runs_watched_and_keeps_its_exit_code(engine: Path) -> None:
    done = run(engine, "--out", "here", "--", sys.executable, "train.py", "guilty")
    assert (done.returncode, done.stdout) == (7, "trained\n")
    assert "RT101 error: `model.derived` was bound to other storage" in done.stderr
    assert done.stderr.endswith("Found 2 errors.\n")
    assert len(list((engine / "here").glob("*.rank.json"))) == 1


def test_the_folder_may_come_from_the_environment(engine: Path) -> None:
    done = run(engine, "--", sys.executable, "train.py", "guilty", REBINDLINT_OUT=str(engine / "there"))
    assert done.returncode == 7
    assert len(list((engine / "there").glob("*.rank.json"))) == 1
    assert not (engine / "rebindlint-reports").exists()


def test_raise_ends_the_command(engine: Path) -> None:
    done = run(engine, "--raise", "--", sys.executable, "train.py", "guilty")
    assert (done.returncode, done.stdout) == (1, "")
    assert "RebindlintError: reload 1 (reload_weights) on rank 0 is not safe: RT101" in done.stderr
    assert done.stderr.endswith("Found 2 errors.\n")


def test_reports_of_earlier_runs_are_left_out(engine: Path) -> None:
    run(engine, "--", sys.executable, "train.py", "guilty")
    done = run(engine, "--", sys.executable, "train.py", "safe")
    assert done.stderr.endswith("Nothing found.\n")
    assert len(list((engine / "rebindlint-reports").iterdir())) == 2


def test_options_of_the_command_are_its_own(tmp_path: Path) -> None:
    code = "import sys; print(sys.argv[1:])"
    done = run(tmp_path, sys.executable, "-c", code, "--out", "x", "--help", "--", "-v")
    assert (done.returncode, done.stdout) == (0, "['--out', 'x', '--help', '--', '-v']\n")


def test_a_command_without_an_engine_is_told_so(tmp_path: Path) -> None:
    done = run(tmp_path, "--", sys.executable, "-c", "print('hello')")
    assert (done.returncode, done.stdout) == (0, "hello\n")
    assert done.stderr.startswith(
        "rebindlint: no rank wrote a report in rebindlint-reports: no vLLM engine in the command got as far as a model"
    )
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    run(tmp_path, "--out", "mine/own/one", "--", sys.executable, "-c", "")
    assert [path.name for path in tmp_path.rglob("*")] == ["mine"]


def test_where_reports_cannot_be_written_nothing_is_started(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for out in ("file", "file/below"):
        done = run(tmp_path, "--out", out, "--", sys.executable, "-c", "print('hello')")
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert done.stderr.startswith(f"rebindlint: --out {out}: reports cannot be written there: ")


@pytest.mark.parametrize(("name", "status"), [("no-such-command-at-all", 127), (".", 126)])
def test_a_command_that_cannot_be_started(tmp_path: Path, name: str, status: int) -> None:
    done = run(tmp_path, "--", name)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (status, "", 1)
    assert done.stderr.startswith(f"rebindlint: {name}: ")


def test_no_command_is_a_usage_error(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 2
    assert done.stderr == "rebindlint: Missing argument 'COMMAND...'.\n"


def test_a_misspelt_option_is_no_command(tmp_path: Path) -> None:
    done = run(tmp_path, "--frsh", "--", sys.executable, "-c", "print('hello')")
    assert (done.returncode, done.stdout) == (2, "")
    assert "No such option" in done.stderr
    assert "--frsh" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_a_command_that_dies_of_a_signal_takes_us_along(tmp_path: Path, number: int) -> None:
    done = run(tmp_path, "--", sys.executable, "-c", f"import os; os.kill(os.getpid(), {int(number)})")
    assert done.returncode == -number
    assert not list(tmp_path.glob("core*"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1])
def test_signals_go_on_to_the_command(tmp_path: Path, number: int) -> None:
    code = f"""
import signal, sys, time
signal.signal({int(number)}, lambda *_: (print("told", flush=True), sys.exit(5)))
print("ready", flush=True)
time.sleep(30)
"""
    options: dict[str, Any] = {"cwd": tmp_path, "text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command("--", sys.executable, "-c", code), start_new_session=True, **options) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.read() == "told\n"
        started = time.monotonic()
        assert process.wait(timeout=20) == 5
        assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    ("listed", "expected"),
    [(None, None), ("mine", "mine,rebindlint"), ("", "rebindlint"), ("rebindlint,mine", "rebindlint,mine")],
)
def test_a_list_of_plugins_gets_ours(tmp_path: Path, listed: str | None, expected: str | None) -> None:
    given = {} if listed is None else {"VLLM_PLUGINS": listed}
    environment = environment_for(given, out=tmp_path, run="r", raises=True)
    assert environment.get("VLLM_PLUGINS") == expected
    assert environment["REBINDLINT"] == "raise"
    assert environment["REBINDLINT_OUT"] == str(tmp_path)
    assert given == ({} if listed is None else {"VLLM_PLUGINS": listed})


@pytest.mark.parametrize(
    ("given", "expected"), [(None, "REBINDLINT"), ("MINE_", "MINE_,REBINDLINT"), ("REBINDLINT", "REBINDLINT")]
)
def test_workers_that_ray_starts_are_watched_too(tmp_path: Path, given: str | None, expected: str) -> None:
    name = "VLLM_RAY_EXTRA_ENV_VAR_PREFIXES_TO_COPY"
    environment = environment_for({} if given is None else {name: given}, out=tmp_path, run="r", raises=False)
    assert environment[name] == expected
