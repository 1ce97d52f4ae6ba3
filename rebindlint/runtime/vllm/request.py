"""What is to be verified. Needs neither torch nor vllm."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["PATH_NAMES", "QUIET", "Request"]

PATH_NAMES: Final = ("reload_weights", "load-and-process", "weight-transfer", "process-twice")
# what engine and libraries would say on stderr although nothing is wrong
QUIET: Final = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "GLOG_minloglevel": "2",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "PYTHONWARNINGS": "ignore",
}


@dataclass(frozen=True, slots=True)
class Request:
    """``layers`` is a pattern of tensor paths that findings are shown for; ``plain_linears`` keeps linear weights as
    tensors on a CPU, as on a GPU.
    """

    model: Path
    reload_from: Path
    path: str = "reload_weights"
    layers: str = ""
    device: str = "auto"
    tensor_parallel: int = 1
    plain_linears: bool = False
