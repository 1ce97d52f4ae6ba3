"""The plugin's third means: the live model beside a fresh load of the checkpoint that it was reloaded from.

It takes the model's memory a second time for a moment, so it has to be asked for, and is left out where memory is short.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch

from rebindlint.model import RebindlintError
from rebindlint.report.style import counted
from rebindlint.runtime.capture import first_line
from rebindlint.runtime.fresh import NoFreshLoad
from rebindlint.runtime.vllm.checkpoints import missing_tensors, read_checkpoint
from rebindlint.runtime.vllm.decode_step import DecodeStep, free_memory
from rebindlint.runtime.vllm.fresh import load_model

__all__ = ["Beside", "FreshLoad"]

_SHARE: Final = 0.8  # of the free memory that a second model may take
_FROM_TRAINER: Final = frozenset({"load_weights", "update_weights", "start_weight_update", "snapshot"})


class Beside:
    """Knows, reload by reload, which checkpoint the weights of the live model are those of; ``reason`` says why that is
    not known, and then ``checkpoint`` is empty. Without ``wanted`` nothing is compared unless the host names one.
    """

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self.checkpoint = ""
        self.reason = "the model was not seen loading"

    def loaded(self, config: Any) -> None:
        """The engine has loaded its model."""
        if _load_format(config) == "dummy":
            self._unknown("the model was loaded with dummy weights")
        else:
            self.checkpoint, self.reason = _configured(config), "the engine names no checkpoint"

    def called(self, point: str, args: tuple[Any, ...], kwargs: dict[str, Any], config: Any) -> None:
        """An outermost hook point was called, with these arguments (the worker first)."""
        if point == "reload_weights":
            self._reloaded(args[1:], kwargs, config)
        elif point in _FROM_TRAINER:
            self._unknown("the weights came from no checkpoint")

    def lost(self) -> None:
        """A reload did not get to its end."""
        self._unknown("an earlier reload failed")

    def fresh_load(self, model: torch.nn.Module, config: Any, step: DecodeStep | None, named: str) -> FreshLoad | None:
        """What to compare with, ``named`` by the host or known from the reload; None when it is not wanted."""
        if not self._wanted and not named:
            return None
        return FreshLoad(model, config, named or self.checkpoint, self.reason, step)

    def _reloaded(self, args: tuple[Any, ...], kwargs: dict[str, Any], config: Any) -> None:
        if kwargs.get("weights_iterator", args[0] if args else None) is not None:
            self._unknown("the weights came from no checkpoint")
            return
        path = kwargs.get("weights_path", args[1] if len(args) > 1 else None)
        new = str(path) if path is not None else _configured(config)
        if lacking := _lacking(self.checkpoint, new):
            self._unknown(f"{new} lacks {counted(lacking, 'tensor')} of {self.checkpoint}")
        else:
            self.checkpoint, self.reason = new, "the engine names no checkpoint"

    def _unknown(self, reason: str) -> None:
        self.checkpoint, self.reason = "", reason


def _configured(config: Any) -> str:
    return str(getattr(getattr(config, "model_config", None), "model", "") or "")


def _load_format(config: Any) -> str:
    return str(getattr(getattr(config, "load_config", None), "load_format", ""))


def _lacking(before: str, now: str) -> int:
    """How many tensors a reload does not bring along; 0 where that cannot be read here."""
    if not before or not now:
        return 0
    try:
        return len(missing_tensors(read_checkpoint(Path(before)), read_checkpoint(Path(now))))
    except RebindlintError:
        return 0


class FreshLoad:
    """Builds the second model; raises NoFreshLoad, in one line, where it cannot: then ``failure`` says why, unless the
    reload itself left no checkpoint. ``step`` None leaves the values to compare.
    """

    def __init__(
        self, live: torch.nn.Module, config: Any, checkpoint: str, reason: str, step: DecodeStep | None
    ) -> None:
        self._live, self._config, self._step = live, config, step
        self._checkpoint, self._reason = checkpoint, reason
        self.failure = ""

    def __call__(self) -> torch.nn.Module | tuple[torch.nn.Module, Callable[[], Any]]:
        if not self._checkpoint:
            raise NoFreshLoad(f"not compared with a fresh load: {self._reason}")
        try:
            self._must_fit()
            fresh = load_model(self._config, self._checkpoint)
        except Exception as error:  # out of memory, most likely; a guest in the engine's process
            self.failure = str(error) if isinstance(error, RebindlintError) else first_line(error)
            raise NoFreshLoad(f"not compared with a fresh load of {self._checkpoint}: {self.failure}") from error
        step = self._step
        if step is None:
            return fresh.model
        return fresh.model, lambda: step.on(fresh)

    def _must_fit(self) -> None:
        parameters = {p.untyped_storage()._cdata: p for p in [*self._live.parameters(), *self._live.buffers()]}
        held = sum(tensor.untyped_storage().nbytes() for tensor in parameters.values())
        needed = max(held, _stored(self._checkpoint) / _ranks(self._config))
        free = free_memory(parameters.values())
        if needed > _SHARE * free:
            raise RebindlintError(f"a second model takes {needed / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free")

    @staticmethod
    def let_go() -> None:
        """Give the second model's memory back to the engine: its layers hold each other."""
        gc.collect()
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.empty_cache()


def _stored(checkpoint: str) -> int:
    """Bytes of the weights on disk: what is packed behind native handles is in no tensor. 0 when it is no folder."""
    try:
        return sum(file.stat().st_size for file in Path(checkpoint).glob("*.safetensors"))
    except OSError:
        return 0


def _ranks(config: Any) -> int:
    return int(getattr(getattr(config, "parallel_config", None), "world_size", 1) or 1)
