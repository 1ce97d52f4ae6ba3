"""The report of one rank: a JSON file that is complete after each reload. Needs neither torch nor vLLM.

A file is written before the first reload, when a reload begins and when it has been judged, always whole and under
its final name, so that a rank that dies leaves what it knew, and which reload it died in.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rebindlint.model import Severity
from rebindlint.runtime.report import Report
from rebindlint.runtime.vllm.settings import Settings
from rebindlint.version import installed_version

__all__ = ["FORMAT", "NAME", "RankReport", "Reload", "Writer", "report_for", "verdict", "versions"]

FORMAT: Final = 1
NAME: Final = "*.rank.json"


@dataclass(slots=True)
class Reload:
    """One reload of a rank. ``state``: running (the file of a rank that died says so), judged, addresses (the step was
    not run), failed (the host's reload raised); ``calls`` are the hook points it went through.
    """

    number: int
    opened_by: str
    state: str = "running"
    protocol: str = ""
    calls: list[str] = field(default_factory=list)
    began: float = 0.0
    seconds: float = 0.0  # that the host's own calls took
    own_seconds: float = 0.0  # that watching and judging took
    error: str = ""  # what the host's reload raised
    capture: dict[str, Any] = field(default_factory=dict)
    findings: list[dict[str, Any]] = field(default_factory=list)
    comparisons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note_call(self, point: str) -> None:
        """Weights may come one by one: a call that repeats the last one is no news."""
        if self.calls[-1:] != [point]:
            self.calls.append(point)

    def take(self, report: Report) -> None:
        """What was found."""
        self.capture = {
            "kind": report.kind,
            "operators": report.operators,
            "storages": report.storages,
            "device": report.device,
        }
        self.findings = report.to_json()
        self.comparisons = [str(comparison) for comparison in report.comparisons]
        self.notes += report.notes

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in Reload.__slots__}


@dataclass(slots=True)
class RankReport:
    """``rank`` counts within the engine, ``world_size`` is how many ranks it has; ``engine`` tells engines apart."""

    engine: str
    rank: int
    world_size: int
    data_parallel_rank: int = 0
    data_parallel_size: int = 1
    run: str = ""
    mode: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    model: str = ""
    missing_hook_points: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    calls: dict[str, int] = field(default_factory=dict)
    reloads: list[Reload] = field(default_factory=list)
    started: float = field(default_factory=time.time)

    @property
    def filename(self) -> str:
        engine = re.sub(r"[^A-Za-z0-9.-]", "-", self.engine) or "engine"
        return f"{engine}-dp{self.data_parallel_rank}-rank{self.rank}-{os.getpid()}.rank.json"

    def to_json(self) -> dict[str, Any]:
        """What the file holds; times are seconds since 1970."""
        return {
            "format": FORMAT,
            "rebindlint": installed_version(),
            **{name: getattr(self, name) for name in RankReport.__slots__ if name != "reloads"},
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "written": time.time(),
            "reloads": [reload.to_json() for reload in self.reloads],
        }

    def write(self, folder: Path) -> None:
        """Raises OSError when the folder cannot be made or written to; an older file is then untouched."""
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.to_json(), indent=1, ensure_ascii=False)
        descriptor, temporary = tempfile.mkstemp(prefix=".rank-", suffix=".part", dir=folder)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, folder / self.filename)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise


def report_for(worker: Any, settings: Settings) -> RankReport:
    """An empty report for a worker of vLLM."""
    config = getattr(worker, "vllm_config", None)
    parallel = getattr(config, "parallel_config", None)
    return RankReport(
        engine=str(getattr(config, "instance_id", "") or f"pid{os.getppid()}"),
        rank=int(getattr(worker, "rank", 0) or 0),
        world_size=int(getattr(parallel, "world_size", 1) or 1),
        data_parallel_rank=int(getattr(parallel, "data_parallel_rank", 0) or 0),
        data_parallel_size=int(getattr(parallel, "data_parallel_size", 1) or 1),
        run=settings.run,
        mode=settings.mode,
        versions=versions(),
    )


def verdict(reload: Reload, report: Report, rank: int, folder: Path | None, *, judged: bool) -> str:
    """What is wrong, in one line; "" when nothing is. That a step could not be captured is no fault of the reload."""
    errors = [f for f in report.findings if f.severity is Severity.ERROR and (judged or f.code != "RT100")]
    if not errors:
        return ""
    first = errors[0]
    more = f" (and {len(errors) - 1} more errors)" if len(errors) > 1 else ""
    where = f"; report in {folder}" if folder is not None else ""
    return (
        f"reload {reload.number} ({reload.opened_by}) on rank {rank} is not safe: "
        f"{first.code} {first.message} at {first.place}{more}{where}"
    )


def versions() -> dict[str, str]:
    """Of what is imported."""
    return {
        name: str(getattr(sys.modules[name], "__version__", "unknown"))
        for name in ("torch", "vllm")
        if name in sys.modules
    }


class Writer:
    """Writes a rank's report; a folder that cannot be written to is said once, in one line, and the host goes on."""

    def __init__(self, report: RankReport, folder: Path | None) -> None:
        self.report = report
        self._folder = folder
        self._failed = ""

    def write(self) -> None:
        if self._folder is None:
            return
        try:
            self.report.write(self._folder)
            self._failed = ""
        except OSError as error:
            reason = f"{self._folder}: {error.strerror or error}"
            if reason != self._failed:
                sys.stderr.write(f"rebindlint: rank {self.report.rank}: report not written, {reason}\n")
            self._failed = reason
