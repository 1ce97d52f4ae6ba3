"""Writes a small ``vllm`` package: only the hook points, and a worker that decodes with a model of one layer.

The model derives a tensor after loading. ``safe`` says whether a reload writes into it or binds a new one.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

LAYERWISE = """
def initialize_layerwise_reload(model):
    model.restored = True

def finalize_layerwise_processing(model, model_config=None):
    model.restored = False
    model.derive()

def finalize_layerwise_reload(*args, **kwargs):
    finalize_layerwise_processing(*args, **kwargs)
"""

LOADER = """
def process_weights_after_loading(model, model_config=None, device=None):
    model.derive()
"""

PARALLEL = """
class GroupCoordinator:
    world_size, rank_in_group = 2, 0
    waited = 0
    def all_reduce(self, tensor):
        return self._all_reduce_out_place(tensor)
    def _all_reduce_out_place(self, tensor):
        GroupCoordinator.waited += 1  # for all ranks
        return tensor * 2
    def broadcast(self, tensor, src=0):
        GroupCoordinator.waited += 1
        return tensor

TP = GroupCoordinator()
"""

GET_MODEL = """
def get_model(vllm_config):
    from vllm.v1.worker import gpu_worker
    model = gpu_worker.Model(safe=True)
    model.load_weights(gpu_worker.stored(vllm_config.model_config.model))
    model.derive()
    vllm_config.compilation_config.static_forward_context["layer"] = model  # the engine shares caches by it
    return model
"""

CONFIG = """
import contextlib
set_current_vllm_config = contextlib.nullcontext
"""

CONTEXT = """
import contextlib, dataclasses

@dataclasses.dataclass
class ForwardContext:
    attn_metadata: object = None
    slot_mapping: object = None

_context = None

def is_forward_context_available():
    return _context is not None

def get_forward_context():
    assert _context is not None
    return _context

@contextlib.contextmanager
def override_forward_context(context):
    global _context
    previous, _context = _context, context
    try:
        yield
    finally:
        _context = previous
"""

BASE = """
class WorkerBase:
    def __init__(self, vllm_config, rank=0):
        self.vllm_config, self.rank = vllm_config, rank
"""

WORKER = """
import json, pathlib, types
import torch
from vllm.model_executor.model_loader import reload, utils
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload
from vllm.distributed.parallel_state import TP
from vllm import forward_context
from .worker_base import WorkerBase


def stored(folder):
    values = json.loads((pathlib.Path(folder) / "weights.json").read_text())
    return [("weight", torch.tensor(values).reshape(4, 4))]


class Model(torch.nn.Module):
    def __init__(self, safe, broadcast=False):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.eye(4), requires_grad=False)
        self.safe, self.broadcast, self.restored, self.forgetful = safe, broadcast, False, False
        self.kv_cache = torch.zeros(8, 4)
        self.table = torch.eye(4) + 0.5
        self.derived = None
        self.derive()

    def derive(self):
        if self.forgetful:
            return
        new = self.weight.detach().t().contiguous() * 3
        if self.derived is not None and self.safe:
            self.derived.copy_(new)
        else:
            self.derived = new

    def load_weights(self, weights):
        for name, value in weights:
            if value is None:
                raise ValueError("a broken checkpoint")
            getattr(self, name).data.copy_(value)

    def forward(self, input_ids, positions):
        hidden = self.table[input_ids] @ self.derived
        slots = forward_context.get_forward_context().slot_mapping
        self.kv_cache[slots] = hidden
        if self.broadcast:
            hidden = TP.broadcast(hidden)
        return TP.all_reduce(hidden + self.kv_cache.sum(0))


class Runner:
    def __init__(self, safe, broadcast):
        self.model = None
        self.safe, self.broadcast = safe, broadcast
        self.input_ids = torch.zeros(2, dtype=torch.int64)
        self.slots = torch.zeros(2, dtype=torch.int64)
        self.steps = 0

    def get_model(self):
        return self.model

    def load_model(self):
        self.model = Model(self.safe, self.broadcast)

    def execute_model(self, scheduled):
        self.steps += 1
        self.input_ids.copy_(torch.tensor([self.steps % 4, (self.steps + 1) % 4]))
        self.slots.copy_(torch.tensor([self.steps % 8, (self.steps + 1) % 8]))
        context = forward_context.ForwardContext(slot_mapping=self.slots)
        with torch.inference_mode(), forward_context.override_forward_context(context):
            return self.model(input_ids=self.input_ids, positions=None)

    def reload_weights(self, weights_iterator=None, weights_path=None):
        weights = weights_iterator if weights_iterator is not None else stored(weights_path)
        reload.initialize_layerwise_reload(self.model)
        self.model.load_weights(weights)
        finalize_layerwise_reload(self.model, None)


class Worker(WorkerBase):
    def __init__(self, vllm_config, rank=0, safe=True, broadcast=False):
        super().__init__(vllm_config, rank)
        self.model_runner = Runner(safe, broadcast)

    def load_model(self):
        self.model_runner.load_model()
        if hasattr(self.vllm_config, "compilation_config"):
            self.vllm_config.compilation_config.static_forward_context["layer"] = self.model_runner.model

    def execute_model(self, scheduler_output):
        return self.model_runner.execute_model(scheduler_output)

    def reload_weights(self, *args, **kwargs):
        self.model_runner.reload_weights(*args, **kwargs)

    def sleep(self, level=1):
        self.slept = level

    def discard(self, tags):
        self.slept = tags

    def wake_up(self, tags=None):
        self.slept = 0
"""

UPDATE = """
    def init_weight_transfer_engine(self, init_info):
        pass

    def start_weight_update(self):
        reload.initialize_layerwise_reload(self.model_runner.model)

    def start_draft_weight_update(self):
        self.draft = True

    def update_weights(self, update_info):
        if getattr(self, "draft", False):
            return
        self.model_runner.model.load_weights(update_info)

    def finish_weight_update(self):
        if getattr(self, "draft", False):
            self.draft = False
            return
        reload.finalize_layerwise_reload(self.model_runner.model, None)
"""


def write_fake_vllm(folder: Path, *, updates: bool = True, layerwise: bool = True) -> None:
    """A package below ``folder``; without ``updates`` an old release whose worker cannot update in phases, without
    ``layerwise`` one whose reload lacks a function.
    """
    processing = "" if layerwise else LAYERWISE.partition("def finalize_layerwise_reload")[0]
    files = {
        "__init__.py": "__version__ = '0.0.1'\n",
        "forward_context.py": CONTEXT,
        "distributed/__init__.py": "",
        "distributed/parallel_state.py": PARALLEL,
        "model_executor/__init__.py": "",
        "config.py": CONFIG,
        "model_executor/model_loader/__init__.py": GET_MODEL,
        "model_executor/model_loader/utils.py": LOADER,
        "model_executor/model_loader/reload/__init__.py": (
            "from .layerwise import initialize_layerwise_reload, finalize_layerwise_processing\n"
            "try:\n    from .layerwise import finalize_layerwise_reload\n"
            "except ImportError:\n    finalize_layerwise_reload = finalize_layerwise_processing\n"
        ),
        "model_executor/model_loader/reload/layerwise.py": processing or LAYERWISE,
        "v1/__init__.py": "",
        "v1/worker/__init__.py": "",
        "v1/worker/worker_base.py": BASE,
        "v1/worker/gpu_worker.py": WORKER + (UPDATE if updates else ""),
    }
    for name, text in files.items():
        path = folder / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
