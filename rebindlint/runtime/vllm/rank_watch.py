"""One worker over its life: load, first decode step, and every reload, whichever calls it consists of.

A reload is opened and closed by hook points (`reload_calls`). What happens in between, by whichever path, is part of it;
what the host calls inside an outermost hook point is only noted. A reload that nothing closes is closed before the next
step.
"""

from __future__ import annotations

import contextlib
import sys
import time
import weakref
from typing import Any, Final

import torch

from rebindlint.model import Protocol, RebindlintError
from rebindlint.runtime.capture import first_line, in_one_line
from rebindlint.runtime.devices import device_of
from rebindlint.runtime.vllm.beside import Beside
from rebindlint.runtime.vllm.decode_step import DecodeStep, StepCatcher, host_state, is_decode
from rebindlint.runtime.vllm.hook_points import Hooks
from rebindlint.runtime.vllm.ranks import Reload, Writer, report_for, verdict, versions
from rebindlint.runtime.vllm.reload_calls import (
    CLOSED_BY,
    ENDS_BEFORE_A_STEP,
    JOINS,
    LAYERWISE,
    OF_DRAFT,
    Asleep,
    opener_of,
)
from rebindlint.runtime.vllm.reload_judge import TOO_EARLY, ReloadJudge
from rebindlint.runtime.vllm.session_guard import SessionGuard
from rebindlint.runtime.vllm.settings import Settings

__all__ = ["RankWatch"]

_UNSEEN: Final = "decode steps ran, but not through the model's forward: they were replayed from the engine's own graphs or compiled code"


class RankWatch:
    """``worker`` is not kept alive."""

    def __init__(self, worker: Any, settings: Settings, hooks: Hooks) -> None:
        self._worker = weakref.ref(worker)
        self._settings = settings
        self._hooks = hooks
        self.report = report_for(worker, settings)
        self._writer = Writer(self.report, settings.out)
        self._model: weakref.ref[torch.nn.Module] | None = None
        self._guard: SessionGuard | None = None
        self._step: DecodeStep | None = None
        self._beside = Beside(wanted=settings.fresh)
        self._wants_step = True
        self._no_step = TOO_EARLY
        self._reload: Reload | None = None
        self._asleep = Asleep()
        self._stack: list[str] = []
        self._open: contextlib.ExitStack | None = None
        self._finished = False  # the reload's last call was made
        self._error = ""  # what one of its calls raised
        self._judge = ReloadJudge(self.report, self._beside, self._roots, self._config)

    def owns(self, model: object) -> bool:
        return self._model is not None and self._model() is model

    def _model_now(self) -> torch.nn.Module | None:
        return self._model() if self._model is not None else None

    def trouble(self, what: str, error: BaseException) -> None:
        """Something of ours failed: said in one line, kept in the report, and the host goes on."""
        line = f"{what}: {in_one_line(error)}"
        sys.stderr.write(f"rebindlint: rank {self.report.rank}: {line}\n")
        self.report.problems.append(line)
        self._writer.write()

    def enter(self, point: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns what `leave` needs. Whatever is raised in here is the caller's to swallow."""
        outermost = not self._stack
        self._stack.append(point)
        try:
            self.report.calls[point] = self.report.calls.get(point, 0) + (point != "execute_model")
            if self._reload is not None and point != "execute_model":
                self._reload.note_call(point)
            if point == "execute_model":
                return self._before_step(args, kwargs)
            if outermost and point in JOINS and self._model is not None:
                if self._reload is None or self._reload.opened_by != OF_DRAFT:
                    self._beside.called(point, args, kwargs, self._config())
                self._enter_reload(point)
        except Exception as error:
            self.trouble(f"{point} is not watched", error)
        return (time.perf_counter(), args, kwargs)

    def leave(self, point: str, token: Any, error: BaseException | None) -> str:
        """What is wrong after the call, in words; empty when nothing is."""
        if self._stack and self._stack[-1] == point:
            self._stack.pop()
        if point == "execute_model":
            return self._after_step(token, error)
        if point == "load_model" and not self._stack and error is None:
            self._loaded()
        if self._stack or self._reload is None or self._model is None:
            return ""
        self._pause()
        if token is not None:
            began, args, kwargs = token
            self._reload.seconds += time.perf_counter() - began
            self._asleep.called(point, args, kwargs)
        self._error = self._error or (first_line(error) if error is not None else "")
        self._finished = self._finished or bool(self._error) or CLOSED_BY[self._reload.opened_by] == point
        return self._close() if self._finished and not self._asleep else ""

    # the model

    def _loaded(self) -> None:
        worker = self._worker()
        runner: Any = getattr(worker, "model_runner", None)
        model = runner.get_model() if hasattr(runner, "get_model") else getattr(runner, "model", None)
        if not isinstance(model, torch.nn.Module):
            self.report.problems.append("the worker has no model after load_model: reloads are not watched")
            self._writer.write()
            return
        self._forget()
        self._model = weakref.ref(model)
        self._hooks.hook_method(type(model), "load_weights")
        self._beside.loaded(self._config())
        self.report.model = type(model).__qualname__
        self.report.versions = versions()
        self.report.missing_hook_points = list(dict.fromkeys(self.report.missing_hook_points + self._hooks.missing()))
        self._writer.write()

    def loaded(self) -> bool:
        """Is there a model? One that was loaded before anybody watched is taken over."""
        if self._model is None:
            self._loaded()
        return self._model_now() is not None

    def _forget(self) -> None:
        """Another model was loaded: nothing that was captured or begun still counts."""
        if self._guard is not None:
            self._guard.close()
        self._guard = self._step = self._reload = None
        self._wants_step, self._no_step = True, TOO_EARLY

    def _config(self) -> Any:
        return getattr(self._worker(), "vllm_config", None)

    def _roots(self) -> dict[str, object]:
        runner = getattr(self._worker(), "model_runner", None)
        return {**(self._step.roots() if self._step else {}), "runner": runner}

    # for the worker extension

    def want_step(self) -> None:
        """Capture the next decode step anew."""
        self._forget()

    def snapshot(self) -> dict[str, Any]:
        """Begin a reload that `verified` ends. Raises RebindlintError when one has begun."""
        if self._reload is not None:
            raise RebindlintError(f"a reload has begun already ({self._reload.opened_by})")
        self._begin("snapshot")
        captured = self._guard is not None and self._guard.captured
        note = self._guard.capture_note if self._guard is not None else ""
        return {"captured": captured, "note": note}

    def verified(self, checkpoint: str = "") -> dict[str, Any]:
        """End that reload and judge it, or give the last one. ``checkpoint`` is what the model has the weights of by
        now, to compare with a fresh load. Raises RebindlintError when there is none.
        """
        if self._reload is not None and self._reload.opened_by == "snapshot":
            self._close(checkpoint)
        if self._reload is not None:
            raise RebindlintError(f"the reload that {self._reload.opened_by} began has not ended")
        if not self.report.reloads:
            raise RebindlintError("nothing was reloaded")
        return self.report.reloads[-1].to_json()

    # the first decode step

    def _before_step(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> StepCatcher | str | None:
        scheduled = kwargs.get("scheduler_output") or (args[1] if len(args) > 1 else None)
        if self._reload is not None:
            if getattr(scheduled, "total_num_scheduled_tokens", 0) and self._reload.opened_by in ENDS_BEFORE_A_STEP:
                self._asleep.clear()  # else there could be no step
                return self._close()
            return None
        model = self._model_now()
        if not self._wants_step or model is None or not is_decode(scheduled):
            return None
        return StepCatcher(model)

    def _after_step(self, token: object, error: BaseException | None) -> str:
        """``token`` is what `_before_step` gave; the verdict of a reload that ended there is handed on."""
        if not isinstance(token, StepCatcher):
            return token if isinstance(token, str) else ""
        token.handle.remove()
        model = self._model_now()
        if token.step is not None and error is None and model is not None:
            self._capture(token.step, model)
        elif error is None:
            self._no_step = token.error or _UNSEEN
        return ""

    def _capture(self, step: DecodeStep, model: torch.nn.Module) -> None:
        self._wants_step = False
        self._step = step
        self._guard = self._new_guard(model)
        try:
            with host_state({"model": model, **self._roots()}):
                self._guard.capture(step, written_at=type(model).forward)
        except Exception as own:  # the step ran a moment ago, but not for us
            self._guard.capture_nothing(f"the first decode step could not be captured: {first_line(own)}")
        if not self._guard.captured:
            sys.stderr.write(
                f"rebindlint: rank {self.report.rank}: reloads are judged by address only: {self._guard.capture_note}\n"
            )

    def _new_guard(self, model: torch.nn.Module) -> SessionGuard:
        # recorded operators everywhere: a graph of our own would take memory from the engine's
        on_cpu = device_of(model) == "cpu"
        return SessionGuard(model, roots=self._roots(), device="cpu", look_inside=("vllm",), stand_in=on_cpu)

    # a reload

    def _enter_reload(self, point: str) -> None:
        if self._reload is None:
            self._begin(point)
        if self._guard is not None and self._reload is not None:
            self._open = contextlib.ExitStack()
            self._open.enter_context(self._guard.watching())

    def _begin(self, point: str) -> None:
        model = self._model_now()
        opener = opener_of(point)
        if model is None or not opener:
            return
        began = time.perf_counter()
        if self._guard is None:
            self._guard = self._new_guard(model)
            self._guard.capture_nothing(self._no_step)
        self._guard.begin()
        self._reload = Reload(len(self.report.reloads) + 1, opener, calls=[point], began=time.time())
        if opener == OF_DRAFT:
            self._reload.notes.append("the draft model was updated; what is watched is the model that it drafts for")
        self.report.reloads.append(self._reload)
        self._writer.write()  # a rank that dies now has said in what
        self._reload.own_seconds += time.perf_counter() - began

    def _pause(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _close(self, checkpoint: str = "") -> str:
        """End the reload and judge it; what is wrong, in words."""
        reload, guard, error = self._reload, self._guard, self._error
        self._reload, self._finished, self._error = None, False, ""
        if reload is None or guard is None:
            return ""
        began = time.perf_counter()
        layerwise = LAYERWISE in reload.calls
        protocol = Protocol.LAYERWISE if layerwise else Protocol.DIRECT
        reload.protocol = protocol.value
        reload.error = error
        guard.end(protocol, error=error)
        report = self._judge.report(guard, reload, self._model_now(), self._step, checkpoint)
        reload.take(report)
        reload.own_seconds += time.perf_counter() - began
        if self._step is None:  # nothing was captured yet
            guard.close()
            self._guard = None
        self._writer.write()
        return verdict(reload, report, self.report.rank, self._settings.out, judged=guard.captured)
