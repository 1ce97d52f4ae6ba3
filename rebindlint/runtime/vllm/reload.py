"""The ways in which an engine takes new weights, each as the engine itself offers it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import torch

from rebindlint.model import Protocol, RebindlintError

__all__ = ["PATHS", "TRANSFER_BACKEND", "Path", "register_transfer"]

TRANSFER_BACKEND: Final = "rebindlint"


@dataclass(frozen=True, slots=True)
class Path:
    """``run`` takes the worker and the checkpoint's folder."""

    run: Callable[[Any, str], None]
    protocol: Protocol
    same_weights: bool = False


def _reload_weights(worker: Any, checkpoint: str) -> None:
    """What `LLM.collective_rpc("reload_weights")` does in every worker."""
    worker.reload_weights(weights_path=checkpoint)


def _load_and_process(worker: Any, checkpoint: str) -> None:
    """What trainers do that write into a running engine: load into the live model, then process it again."""
    model = worker.model_runner.get_model()
    with _configured(worker), torch.inference_mode():
        model.load_weights(_weights(worker, checkpoint))
        _process(worker, model)


def _process_twice(worker: Any, _checkpoint: str) -> None:
    """The processing after loading once more, on the weights that are there."""
    with _configured(worker), torch.inference_mode():
        _process(worker, worker.model_runner.get_model())


def _weight_transfer(worker: Any, checkpoint: str) -> None:
    """The weight update in four phases, with an engine of our own that reads a checkpoint."""
    worker.init_weight_transfer_engine({"checkpoint": checkpoint})
    worker.start_weight_update()
    worker.update_weights({"checkpoint": checkpoint})
    worker.finish_weight_update()


PATHS: Final = {
    "reload_weights": Path(_reload_weights, Protocol.LAYERWISE),
    "load-and-process": Path(_load_and_process, Protocol.DIRECT),
    "weight-transfer": Path(_weight_transfer, Protocol.LAYERWISE),
    "process-twice": Path(_process_twice, Protocol.DIRECT, same_weights=True),
}


def _configured(worker: Any) -> Any:
    from vllm.config import set_current_vllm_config

    return set_current_vllm_config(worker.vllm_config)


def _weights(worker: Any, checkpoint: str) -> Iterable[tuple[str, torch.Tensor]]:
    import copy

    from vllm.model_executor.model_loader import get_model_loader

    config = copy.copy(worker.vllm_config.model_config)
    config.model = checkpoint
    loader = get_model_loader(worker.vllm_config.load_config)
    weights: Iterable[tuple[str, torch.Tensor]] = loader.get_all_weights(config, worker.model_runner.get_model())
    return weights


def _process(worker: Any, model: torch.nn.Module) -> None:
    from vllm.model_executor.model_loader.utils import process_weights_after_loading

    process_weights_after_loading(model, worker.vllm_config.model_config, worker.device)


def register_transfer() -> None:
    """Make the engine for ``weight-transfer`` known. Raises RebindlintError for a vLLM without such engines."""
    try:
        from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory

        from rebindlint.runtime.vllm.transfer import CheckpointTransfer
    except (ImportError, AttributeError) as error:
        raise RebindlintError(f"this vLLM has no weight transfer engines: {error}") from error
    if TRANSFER_BACKEND not in WeightTransferEngineFactory._registry:
        WeightTransferEngineFactory.register_engine(TRANSFER_BACKEND, CheckpointTransfer)
