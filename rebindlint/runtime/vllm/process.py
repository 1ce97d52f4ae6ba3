"""What the plugin sees in one process: its workers, and the calls they get. Needs vLLM; torch comes with it.

`Ranks` is told of every call of a hook point. Nothing that goes wrong in here reaches the host, except what the mode
``raise`` is for.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any, NamedTuple

from rebindlint.model import RebindlintError
from rebindlint.runtime.capture import in_one_line
from rebindlint.runtime.vllm.hook_points import FUNCTIONS, Hooks
from rebindlint.runtime.vllm.rank_watch import RankWatch
from rebindlint.runtime.vllm.settings import Settings

__all__ = ["Ranks", "forget_process", "ranks_of_process", "watch_process"]

_OF_MODELS = frozenset(name for names in FUNCTIONS.values() for name in names) | {"load_weights"}


class Visit(NamedTuple):
    rank: RankWatch
    point: str
    token: Any


class Ranks:
    """The workers of a process (one, unless an engine runs in the process of its user, or several do)."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.hooks = Hooks(self)
        self._ranks: weakref.WeakKeyDictionary[Any, RankWatch] = weakref.WeakKeyDictionary()

    def created(self, worker: Any) -> None:
        try:
            self.rank_of(worker)
        except Exception as error:  # a guest in the worker's constructor
            _say("this worker is not watched", error)

    def rank_of(self, worker: Any) -> RankWatch:
        """The watch of a worker, begun if there was none."""
        rank = self._ranks.get(worker)
        if rank is None:
            missing = self.hooks.hook_worker_class(type(worker))
            rank = self._ranks[worker] = RankWatch(worker, self.settings, self.hooks)
            rank.report.missing_hook_points += missing
        return rank

    def enter(self, point: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Visit | None:
        try:
            rank = self._rank_for(point, args, kwargs)
            return None if rank is None else Visit(rank, point, rank.enter(point, args, kwargs))
        except Exception as error:  # a guest in the host's call
            _say(f"{point} is not watched", error)
            return None

    def leave(self, visit: Visit | None, error: BaseException | None) -> None:
        """Raises RebindlintError when a reload is not safe, the mode is ``raise`` and the host raised nothing."""
        if visit is None:
            return
        verdict = ""
        try:
            verdict = visit.rank.leave(visit.point, visit.token, error)
        except Exception as own:  # a guest after the host's call
            visit.rank.trouble(f"{visit.point} was not judged", own)
        if verdict and error is None and self.settings.raises:
            raise RebindlintError(verdict)

    def _rank_for(self, point: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> RankWatch | None:
        subject = args[0] if args else next(iter(kwargs.values()), None)
        if point not in _OF_MODELS:
            return self._ranks.get(subject)
        return next((rank for rank in self._ranks.values() if rank.owns(subject)), None)


def _say(what: str, error: BaseException) -> None:
    sys.stderr.write(f"rebindlint: {what}: {in_one_line(error)}\n")


_of_process: Ranks | None = None


def watch_process(settings: Settings) -> Ranks:
    """Hook into this process, once: later settings change nothing."""
    global _of_process
    if _of_process is None:
        ranks = Ranks(settings)
        ranks.hooks.install()
        _of_process = ranks
    return _of_process


def ranks_of_process() -> Ranks | None:
    return _of_process


def forget_process() -> None:
    """Unhook: the process is as if it had never been watched."""
    global _of_process
    if _of_process is not None:
        _of_process.hooks.uninstall()
        _of_process = None
