"""A weight transfer engine that "receives" a checkpoint from disk: it stands for the trainer in a four-phase update."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from vllm.distributed.weight_transfer.base import WeightTransferEngine
from vllm.model_executor.model_loader import get_model_loader
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

__all__ = ["CheckpointTransfer"]


@dataclass
class _Source:
    checkpoint: str


class CheckpointTransfer(WeightTransferEngine):  # type: ignore[type-arg, misc, unused-ignore]
    """Prepares and finishes as the engines for checkpoint formats do, and loads from ``checkpoint`` in between."""

    init_info_cls = _Source
    update_info_cls = _Source

    def init_transfer_engine(self, init_info: _Source) -> None:
        """Nothing has to be connected."""

    def start_weight_update(self) -> None:
        initialize_layerwise_reload(self.model)

    def receive_weights(self, update_info: _Source) -> None:
        config: Any = copy.copy(self.model_config)
        config.model = update_info.checkpoint
        loader = get_model_loader(self.vllm_config.load_config)
        self.model.load_weights(loader.get_all_weights(config, self.model))

    def update_weights(self, update_info: dict[str, Any]) -> None:
        self.receive_weights(self.parse_update_info(update_info))

    def finish_weight_update(self) -> None:
        finalize_layerwise_reload(self.model, self.model_config)

    def shutdown(self) -> None:
        """Nothing has to be closed."""
