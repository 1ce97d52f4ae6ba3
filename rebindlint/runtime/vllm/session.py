"""What happens in each worker of the engine: freeze a decode step, capture it, reload, verify.

The functions are called by name in the worker's process, with the worker as first argument; what belongs together is
kept in a `Session` there. Only plain values come back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from rebindlint.model import RebindlintError
from rebindlint.runtime.guard import Guard
from rebindlint.runtime.report import Report
from rebindlint.runtime.vllm.fresh import load_fresh
from rebindlint.runtime.vllm.kept import Kept
from rebindlint.runtime.vllm.reload import PATHS, register_transfer
from rebindlint.runtime.vllm.step import FrozenStep, StepTap

__all__ = ["capture", "close", "listen", "paths", "prepare_transfer", "reload", "verify"]

Partial = Callable[[Report], None] | None

_sessions: dict[int, Session] = {}


class Session:
    """One worker's model, its frozen step and the guard over both."""

    def __init__(self, worker: Any, device: str, folder: str) -> None:
        self.worker = getattr(worker, "worker", worker)
        self.kept = Kept(Path(folder)) if folder else None
        self.runner = self.worker.model_runner
        self.model: torch.nn.Module = self.runner.get_model()
        self.device = device
        self.tap = StepTap(self.model)
        self.step: FrozenStep | None = None
        self.guard: Guard | None = None

    def capture(self) -> str:
        """Why the capture cannot be judged, "" when it can."""
        self.step = self.tap.frozen(self.worker.vllm_config)
        on_cpu = torch.device(self.worker.device).type == "cpu"
        self.guard = Guard(
            self.model,
            roots={"runner": self.runner, **self.step.inputs()},
            device=self.device,
            look_inside=("vllm",),
            stand_in=on_cpu,  # the engine captures no graphs there
        )
        return self.guard.capture(self.step, written_at=type(self.model).forward).reason

    def reload(self, path: str, checkpoint: str, same_weights: bool) -> None:
        assert self.guard is not None
        chosen = PATHS[path]
        same = same_weights or chosen.same_weights
        with self.guard.reloading(protocol=chosen.protocol, same_weights=same):
            chosen.run(self.worker, checkpoint)
        if self.kept is not None:  # before another rank may end the engine
            self._keep(self.guard.known())

    def _keep(self, report: Report) -> None:
        if self.kept is not None:
            with contextlib.suppress(OSError):  # no room for it: then it counts only if every rank gets to the end
                self.kept.keep(self.worker.rank, report)

    def verify(self, checkpoint: str, partial: Partial) -> Report:
        assert self.guard is not None
        assert self.step is not None
        step = self.step
        report = self.guard.verify(
            lambda: load_fresh(self.worker.vllm_config, checkpoint, step),
            beyond={"logits": step.logits},
            partial=partial,
        )
        self._keep(report)
        return report


def _session(worker: Any) -> Session:
    try:
        return _sessions[id(worker)]
    except KeyError:
        raise RebindlintError("nothing was begun in this worker") from None


def prepare_transfer(_worker: Any = None) -> None:
    register_transfer()


def listen(worker: Any, device: str, folder: str = "") -> None:
    """From now on keep the model's last forward pass, and in ``folder``, if given, what is known."""
    _sessions[id(worker)] = Session(worker, device, folder)


def capture(worker: Any) -> str:
    return _session(worker).capture()


def paths(worker: Any) -> list[str]:
    """Of all tensors that the captured rank has, by any name."""
    guard = _session(worker).guard
    assert guard is not None
    return guard.paths()


def reload(worker: Any, path: str, checkpoint: str, same_weights: bool) -> None:
    """What the engine raises passes through."""
    _session(worker).reload(path, checkpoint, same_weights)


def verify(worker: Any, checkpoint: str, partial: Partial = None) -> Report:
    """``partial`` as in `Guard.verify`; it must be None for workers in other processes."""
    return _session(worker).verify(checkpoint, partial)


def close(worker: Any) -> None:
    """Let go of model and captured storages."""
    session = _sessions.pop(id(worker), None)
    if session is not None and session.guard is not None:
        session.guard.close()
