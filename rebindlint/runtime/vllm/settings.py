"""What the environment asks for. Needs neither torch nor vLLM."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rebindlint.model import RebindlintError

__all__ = ["DEFAULT_OUT", "FRESH", "MODE", "MODES", "OUT", "RUN", "Settings", "carry_to_ray"]

MODE: Final = "REBINDLINT"
OUT: Final = "REBINDLINT_OUT"
FRESH: Final = "REBINDLINT_FRESH"
RUN: Final = "REBINDLINT_RUN"  # set by `rebindlint run`: tells the reports of one run from those of another
MODES: Final = ("report", "raise")
_CARRIED_TO_RAY: Final = "VLLM_RAY_EXTRA_ENV_VAR_PREFIXES_TO_COPY"  # vLLM's own variables go along without it
DEFAULT_OUT: Final = "rebindlint-reports"


@dataclass(frozen=True, slots=True)
class Settings:
    """``mode`` is report or raise; ``out`` is the folder of the rank reports, None when none are written. ``fresh`` asks
    for a second model, loaded from the checkpoint of the reload, to compare with.
    """

    mode: str
    out: Path | None
    run: str = ""
    fresh: bool = False

    @property
    def raises(self) -> bool:
        return self.mode == "raise"

    @classmethod
    def of_environment(cls) -> Settings:
        """Raises RebindlintError for a value that does not exist."""
        mode = os.environ.get(MODE, "")
        if mode not in MODES:
            raise RebindlintError(f"{MODE}={mode} is unknown; use {' or '.join(MODES)}")
        fresh = os.environ.get(FRESH) or "0"
        if fresh not in ("0", "1"):
            raise RebindlintError(f"{FRESH}={fresh} is unknown; use 1 or 0")
        out = Path(os.environ.get(OUT) or DEFAULT_OUT).absolute()
        return cls(mode, out, os.environ.get(RUN, ""), fresh == "1")


def carry_to_ray(environment: MutableMapping[str, str]) -> None:
    """Let vLLM's Ray executor set our variables in its workers as well."""
    prefixes = [prefix for prefix in environment.get(_CARRIED_TO_RAY, "").split(",") if prefix.strip()]
    if MODE not in prefixes:
        environment[_CARRIED_TO_RAY] = ",".join([*prefixes, MODE])
