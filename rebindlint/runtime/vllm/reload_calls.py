"""Which calls a reload consists of: what opens one and what closes it, and over which of them memory sleeps."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["CLOSED_BY", "ENDS_BEFORE_A_STEP", "JOINS", "LAYERWISE", "OF_DRAFT", "Asleep", "opener_of"]

OF_DRAFT: Final = "start_draft_weight_update"
LAYERWISE: Final = "initialize_layerwise_reload"
# what opens a reload, and what closes it
CLOSED_BY: Final = {
    "reload_weights": "reload_weights",
    "start_weight_update": "finish_weight_update",
    OF_DRAFT: "finish_weight_update",
    "update_weights": "update_weights",  # releases whose updates have no start
    "sleep": "wake_up",
    "discard": "wake_up",  # memory is given up without sleeping first
    LAYERWISE: "finalize_layerwise_reload",
    "load_weights": "process_weights_after_loading",
    "process_weights_after_loading": "process_weights_after_loading",
    "snapshot": "verify",  # the worker extension
}
JOINS: Final = frozenset({*CLOSED_BY, *CLOSED_BY.values(), "finalize_layerwise_processing"})
ENDS_BEFORE_A_STEP: Final = frozenset({"sleep", "discard", LAYERWISE, "load_weights"})
_ALL: Final = frozenset({"weights", "kv_cache"})


def opener_of(point: str) -> str:
    """The hook point itself, or the one that it closes a reload of; empty when it belongs to none or only wakes up."""
    if point in CLOSED_BY:
        return point
    return "" if point == "wake_up" else next((opener for opener, end in CLOSED_BY.items() if end == point), "")


class Asleep:
    """What sleeps: its memory may not even be looked at."""

    def __init__(self) -> None:
        self._tags: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self._tags)

    def called(self, point: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A hook point was called, with these arguments (the worker first)."""
        if point == "sleep":
            self._tags = _ALL
        elif point in ("discard", "wake_up"):
            tags = kwargs.get("tags", args[1] if len(args) > 1 else None)
            named = frozenset({tags} if isinstance(tags, str) else tags or ())
            if point == "discard":
                self._tags |= named
            else:
                self._tags = self._tags - named if named else frozenset()

    def clear(self) -> None:
        self._tags = frozenset()
