"""Judging a reload that has ended, by as much as can be had: the captured step and a fresh load, the step alone, or
addresses.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import torch

from rebindlint.runtime.capture import first_line
from rebindlint.runtime.report import Report
from rebindlint.runtime.vllm.beside import Beside, FreshLoad
from rebindlint.runtime.vllm.decode_step import DecodeStep, host_state
from rebindlint.runtime.vllm.ranks import RankReport, Reload
from rebindlint.runtime.vllm.session_guard import SessionGuard

__all__ = ["TOO_EARLY", "ReloadJudge"]

TOO_EARLY: Final = "no decode step ran before this reload"  # nothing is wrong with that


class ReloadJudge:
    """``roots`` and ``config`` give what the worker has now."""

    def __init__(
        self, rank: RankReport, beside: Beside, roots: Callable[[], dict[str, object]], config: Callable[[], Any]
    ) -> None:
        self._rank = rank
        self._beside = beside
        self._roots = roots
        self._config = config
        self._told = ""  # why there was no fresh load, said once

    def report(
        self,
        guard: SessionGuard,
        reload: Reload,
        model: torch.nn.Module | None,
        captured: DecodeStep | None,
        checkpoint: str,
    ) -> Report:
        """Sets the reload's state. Never raises for what the step or the fresh load raises."""
        if reload.error or model is None:  # a step on a model that is half reloaded may bring the process down
            reload.state = "failed" if reload.error else "addresses"
            self._beside.lost()
            return guard.verify_addresses()
        step = captured if guard.captured else None
        fresh = self._beside.fresh_load(model, self._config(), step, checkpoint)
        try:
            report = self._run(guard, model, step, fresh, reload) if step is not None else None
            if report is None:
                reload.state = "addresses"
                return guard.verify_addresses(mild=guard.capture_note == TOO_EARLY, fresh=fresh)
        finally:
            if fresh is not None:
                self._tell(fresh.failure)
                fresh.let_go()
        reload.state = "judged"
        return report

    def _run(
        self,
        guard: SessionGuard,
        model: torch.nn.Module,
        step: DecodeStep,
        fresh: FreshLoad | None,
        reload: Reload,
    ) -> Report | None:
        alone = self._rank.world_size == 1  # logits are gathered from all ranks
        try:
            with host_state({"model": model, **self._roots()}):
                step.load_inputs()
                return guard.verify(fresh, beyond={"logits": step.logits} if alone else None)
        except Exception as error:  # too little memory to look: the addresses are known still
            reload.notes.append(f"the step was not run: {first_line(error)}")
            return None

    def _tell(self, failure: str) -> None:
        if failure and failure != self._told:
            sys.stderr.write(
                f"rebindlint: rank {self._rank.rank}: reloads are not compared with a fresh load: {failure}\n"
            )
        self._told = failure
