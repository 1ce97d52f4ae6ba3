"""The entry point ``vllm.general_plugins: rebindlint``, called once in every process of an engine.

Does nothing unless the environment variable REBINDLINT is set: then it costs this import and one look-up. Nothing
heavy may be imported at the top of this file.
"""

from __future__ import annotations

import os
import sys

__all__ = ["register"]


def register() -> None:
    """Hook into this process when REBINDLINT is ``report`` or ``raise``. Never raises: an exception in here would end
    the engine.
    """
    if not os.environ.get("REBINDLINT"):
        return
    try:
        from rebindlint.runtime.vllm.process import watch_process
        from rebindlint.runtime.vllm.settings import Settings, carry_to_ray

        watch_process(Settings.of_environment())
        carry_to_ray(os.environ)  # an engine that starts its workers through Ray asks for its variables later
    except Exception as error:  # a guest in the engine's start
        sys.stderr.write(f"rebindlint: not watching this process: {' '.join(str(error).split())}\n")
