"""A fake engine in this process, watched or not."""

from __future__ import annotations

import importlib
import json
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from rebindlint.runtime.vllm.process import Ranks, forget_process, watch_process
from rebindlint.runtime.vllm.settings import Settings

from .fake_vllm import write_fake_vllm

NEW = [("weight", torch.arange(16.0).reshape(4, 4))]


def scheduled(*, new: int = 0, tokens: int = 1) -> types.SimpleNamespace:
    """What a scheduler gives out for two requests: decoding, or ``new`` ones that are being read."""
    requests = {"a": tokens, "b": tokens}
    return types.SimpleNamespace(
        num_scheduled_tokens=requests,
        total_num_scheduled_tokens=sum(requests.values()),
        scheduled_new_reqs=[None] * new,
        scheduled_spec_decode_tokens={},
    )


class World:
    def __init__(self, folder: Path, out: Path | None) -> None:
        self.folder, self.out = folder, out
        self.ranks: Ranks | None = None

    def watch(self, mode: str = "report", *, fresh: bool = False) -> Ranks:
        self.ranks = watch_process(Settings(mode, self.out, fresh=fresh))
        return self.ranks

    def worker(self, *, safe: bool = True, rank: int = 0, size: int = 1, broadcast: bool = False) -> Any:
        """A loaded worker."""
        module = importlib.import_module("vllm.v1.worker.gpu_worker")
        parallel = types.SimpleNamespace(world_size=size, data_parallel_rank=0, data_parallel_size=1)
        config = types.SimpleNamespace(
            instance_id="e1",
            parallel_config=parallel,
            model_config=types.SimpleNamespace(model=str(self.checkpoint("first", torch.eye(4)))),
            load_config=types.SimpleNamespace(load_format="auto"),
            compilation_config=types.SimpleNamespace(static_forward_context={}),
        )
        worker = module.Worker(config, rank, safe=safe, broadcast=broadcast)
        worker.load_model()
        return worker

    def checkpoint(self, name: str, weight: torch.Tensor) -> Path:
        """A folder that `reload_weights` can load from."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "weights.json").write_text(json.dumps(weight.flatten().tolist()))
        return folder

    def decode(self, worker: Any, times: int = 1) -> list[torch.Tensor]:
        return [worker.execute_model(scheduled()) for _ in range(times)]

    def report(self, rank: int = 0) -> dict[str, Any]:
        """The rank's file."""
        assert self.out is not None
        (path,) = self.out.glob(f"*-rank{rank}-*.rank.json")
        record: dict[str, Any] = json.loads(path.read_text())
        return record

    def last(self, rank: int = 0) -> dict[str, Any]:
        reload: dict[str, Any] = self.report(rank)["reloads"][-1]
        return reload


def phases(worker: Any) -> None:
    worker.init_weight_transfer_engine({})
    worker.start_weight_update()
    worker.update_weights(NEW)
    worker.finish_weight_update()


def codes(reload: dict[str, Any]) -> list[str]:
    return sorted(finding["code"] for finding in reload["findings"])


@contextmanager
def fake_world(folder: Path, *, updates: bool = True, layerwise: bool = True) -> Iterator[World]:
    """Fakes are imported anew for each test; nothing of them or of us stays behind."""
    write_fake_vllm(folder, updates=updates, layerwise=layerwise)
    saved = {name: sys.modules.pop(name) for name in [*sys.modules] if name.partition(".")[0] == "vllm"}
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield World(folder, folder / "out")
    finally:
        forget_process()
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.partition(".")[0] == "vllm"]:
            del sys.modules[name]
        sys.modules.update(saved)
