"""Run a tree's hooks in a process of their own, and collect what it says. Needs no torch.

The process may die (stand-ins do not fool native code for ever): what it had said by then counts, and what comes after
the layer that it died on is run in another process.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rebindlint.model import RebindlintError
from rebindlint.runtime.sources.facts import ScenarioFacts, from_json
from rebindlint.runtime.sources.methods import METHODS, capability

__all__ = ["TIME_LIMIT", "Outcome", "chosen_methods", "package_root", "run_tree"]

TIME_LIMIT: Final = 600.0  # seconds, for a whole tree
_CHILD: Final = Path(__file__).with_name("child.py")
_UNWANTED: Final = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONDONTWRITEBYTECODE")
# What a release may prefer to the kernels that the methods are about, by the capability of the GPU.
_OTHERS: Final = {
    (9, 0): "MacheteLinearKernel",
    (8, 0): "MacheteLinearKernel,CutlassFP8ScaledMMLinearKernel,CutlassFp8BlockScaledMMKernel",
}
_POLL: Final = 0.1  # seconds
_DEPENDENCIES: Final = "it needs vLLM's dependencies; --python names an environment that has them"


@dataclass(frozen=True, slots=True)
class Outcome:
    """``facts`` in the order of the methods asked for; ``seconds`` is the wall time of all processes."""

    tree: Path
    version: str
    torch: str
    facts: tuple[ScenarioFacts, ...]
    seconds: float


def chosen_methods(wanted: Sequence[str]) -> tuple[str, ...]:
    """Names from comma lists, ``all`` for every one. Raises RebindlintError for a name that is none."""
    names = [name for item in wanted for name in (part.strip() for part in item.split(",")) if name] or ["all"]
    unknown = [name for name in names if name not in METHODS and name != "all"]
    if unknown:
        raise RebindlintError(f"unknown method {unknown[0]!r}; known are {', '.join(METHODS)}, all")
    return tuple(dict.fromkeys(METHODS if "all" in names else names))


def package_root(tree: Path) -> Path:
    """The folder that holds the package ``vllm``, given that or the package itself. Raises RebindlintError."""
    for folder in (tree, tree.parent if tree.name == "vllm" else tree / "src"):
        if (folder / "vllm" / "__init__.py").is_file():
            return folder.resolve()
    problem = "holds no vllm/__init__.py" if tree.is_dir() else "is no folder"
    raise RebindlintError(f"{tree} {problem}: --sources wants an unpacked or checked-out vLLM")


def run_tree(
    tree: Path,
    methods: Sequence[str],
    *,
    python: str | Path = "",
    time_limit: float = TIME_LIMIT,
    progress: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """``python`` is the interpreter of an environment with vLLM's dependencies, this one by default.

    Raises RebindlintError in one line when the tree cannot be imported there, or when ``python`` is no interpreter.
    """
    started = time.monotonic()
    run = _Run(package_root(tree), str(python or sys.executable), started + time_limit, progress)
    for gpu in dict.fromkeys(capability(method) for method in methods):
        run.batch([method for method in methods if capability(method) == gpu], gpu)
    facts = sorted(run.facts, key=lambda entry: methods.index(entry.method))
    return Outcome(run.root, run.version, run.torch, tuple(facts), time.monotonic() - started)


@dataclass(slots=True)
class _Run:
    root: Path
    python: str
    deadline: float
    progress: Callable[[str], None]
    facts: list[ScenarioFacts] = field(default_factory=list)
    version: str = ""
    torch: str = ""

    def batch(self, left: list[str], gpu: tuple[int, int]) -> None:
        """Methods on one GPU, in one process as long as it lives."""
        while left:
            if self.facts and time.monotonic() >= self.deadline:
                late = "not all of it was run: the time limit ran out"
                self.facts += [ScenarioFacts(method, "", error=late) for method in left]
                return
            done = [(entry.method, entry.variant) for entry in self.facts]
            request = {"tree": str(self.root), "capability": gpu, "methods": left, "done": done}
            events, reason = _run_once(self.root, request, self.python, self.deadline, self.progress)
            reason = _first(events, "unusable").get("error", "") or reason
            imported = _first(events, "imported")
            if imported:
                self.version, self.torch = imported["version"], imported["torch"]
            if not self.version:
                raise RebindlintError(_cannot_import(self.root, reason))
            self.facts += [from_json(event["facts"]) for event in events if event["event"] == "scenario"]
            if not reason:
                return
            died, left = _after_death(events, left, reason)
            self.facts.append(died)


def _first(events: Sequence[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next((event for event in events if event["event"] == kind), {})


def _after_death(events: Sequence[dict[str, Any]], left: list[str], reason: str) -> tuple[ScenarioFacts, list[str]]:
    """What the process died on, and the methods that are still to be run: its own again for its other variants, unless
    it could not even say which there are.
    """
    last = next((event for event in reversed(events) if event["event"] in ("method", "begin")), None)
    if last is None:
        return ScenarioFacts(left[0], "", error=reason), left[1:]
    rest = left[left.index(last["method"]) + (last["event"] == "method") :]
    return ScenarioFacts(last["method"], last.get("variant", ""), error=reason), rest


def _cannot_import(root: Path, reason: str) -> str:
    hint = f" ({_DEPENDENCIES})" if reason.startswith("ModuleNotFoundError") else ""
    return f"cannot import vllm from {root}: {reason}{hint}"


def _run_once(
    root: Path, request: dict[str, Any], python: str, deadline: float, progress: Callable[[str], None]
) -> tuple[list[dict[str, Any]], str]:
    """What the process said, and why it did not get to its end ("" when it did)."""
    with tempfile.TemporaryDirectory(prefix="rebindlint-sources-") as folder:
        results, log = Path(folder, "results.jsonl"), Path(folder, "log")
        results.touch()
        command = [python, "-P", "-X", "utf8", str(_CHILD), json.dumps({**request, "results": str(results)})]
        with log.open("wb") as output:
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=_environment(root, folder, request["capability"]),
                    start_new_session=True,
                )
            except OSError as error:
                raise RebindlintError(f"cannot run {python}: {error.strerror or error}") from error
        with _ended(process):
            in_time = _wait(process, deadline, results, progress)
        events = list(_events(results))
        if _first(events, "end") or _first(events, "unusable"):
            return events, ""
        return events, _reason(process.returncode, log) if in_time else "the time limit ran out"


def _environment(root: Path, scratch: str, gpu: tuple[int, int]) -> dict[str, str]:
    """Nothing of ours on the path, no GPU, no network, no plugins, and no byte code written into the tree."""
    kept = {k: v for k, v in os.environ.items() if k not in _UNWANTED}
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return {
        "OMP_NUM_THREADS": "1",
        **kept,
        "PYTHONPATH": str(root),
        "PYTHONPYCACHEPREFIX": str(caches / "rebindlint" / "pycache"),
        "PYTHONWARNINGS": "ignore",
        "CUDA_VISIBLE_DEVICES": "",
        "HF_HUB_OFFLINE": "1",
        "TMPDIR": scratch,
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_PLUGINS": "",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_DISABLED_KERNELS": _OTHERS[gpu],
    }


@contextlib.contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """However the body ends, the process and what it started do not outlive it."""
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait(process: subprocess.Popen[bytes], deadline: float, results: Path, progress: Callable[[str], None]) -> bool:
    """False when the deadline came first. Tells ``progress`` what is being done."""
    told = ""
    while True:
        now = next((event["method"] for event in reversed(list(_events(results))) if "method" in event), "")
        text = f"running {now}" if now else "importing vllm"
        if text != told:
            progress(text)
            told = text
        try:
            process.wait(min(_POLL, max(deadline - time.monotonic(), 0)))
        except subprocess.TimeoutExpired:
            if time.monotonic() >= deadline:
                return False
        else:
            return True


def _events(results: Path) -> Iterator[dict[str, Any]]:
    """Whole lines only: the last one may be being written."""
    for line in results.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.endswith("\n"):
            yield json.loads(line)


def _reason(status: int, log: Path) -> str:
    said = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    last = f": {said[-1][:300]}" if said else ""
    if status < 0:
        with contextlib.suppress(ValueError):
            return f"the process was ended by {signal.Signals(-status).name}{last}"
    return f"the process ended with status {status}{last}"
