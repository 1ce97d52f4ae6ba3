"""Runs ``rebindlint`` in an engine whose second rank is killed, in the step that $KILLED_IN names."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

from rebindlint.runtime.vllm.session import Session

_ASKED = os.environ["KILLED_IN"]
_OTHERS = 3.0  # seconds that the other rank has for its own part


def _killed_first(method: Any) -> Any:
    def run(session: Session, *arguments: Any) -> Any:
        if session.worker.rank == 1:
            time.sleep(_OTHERS)
            os.kill(os.getpid(), signal.SIGKILL)
        return method(session, *arguments)

    return run


# here, because ranks are processes that import this script again
setattr(Session, _ASKED, _killed_first(getattr(Session, _ASKED)))

if __name__ == "__main__":
    from rebindlint.cli import main

    sys.argv[0] = "rebindlint"
    main()
