"""One decode step of a live engine, frozen so that it can be run again, and everything that running it could disturb.

The engine goes on after we have looked. So each run of ours happens between two copies of all memory that a step can
write: caches, input buffers, whatever the model and its runner hold beside the parameters. Where that memory is too
large to copy the step is not run at all, and reloads are judged by address.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import torch

from rebindlint.model import RebindlintError
from rebindlint.runtime.capture import first_line
from rebindlint.runtime.census import take_census
from rebindlint.runtime.storages import SavedBytes
from rebindlint.runtime.vllm.fresh import FreshModel

__all__ = ["DecodeStep", "StepCatcher", "free_memory", "host_state", "is_decode", "local_collectives"]

_SHARE: Final = 0.25  # of the free memory that copies may take
_INPUT_LIMIT: Final = 1 << 26  # bytes of one input tensor


def is_decode(scheduled: Any) -> bool:
    """Does every request of the scheduler's output decode (one token each, drafted ones besides), and is there one?"""
    tokens: Mapping[str, int] = getattr(scheduled, "num_scheduled_tokens", None) or {}
    drafts: Mapping[str, Any] = getattr(scheduled, "scheduled_spec_decode_tokens", None) or {}
    if not tokens or getattr(scheduled, "scheduled_new_reqs", None):
        return False
    return all(count == 1 + len(drafts.get(request, ())) for request, count in tokens.items())


class DecodeStep:
    """A callable without arguments: one forward of the model with the arguments and the forward context that it had,
    inputs included.
    """

    def __init__(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._model, self._args, self._kwargs = model, args, kwargs
        self._context = copy.copy(_forward_context())
        self._inputs = [
            (record.tensor.detach(), record.tensor.detach().clone())
            for record in take_census(self.roots()).records
            if record.storage is not None and record.tensor.nbytes <= _INPUT_LIMIT and not _is_cache(record.path)
        ]

    def roots(self) -> dict[str, object]:
        """What a census needs to name the inputs."""
        context = self._context
        return {
            "inputs": {"args": self._args, "kwargs": self._kwargs},
            "attn_metadata": getattr(context, "attn_metadata", None),
            "slot_mapping": getattr(context, "slot_mapping", None),
        }

    def __call__(self) -> Any:
        return self._run(self._model, copy.copy(self._context))

    def on(self, fresh: FreshModel) -> Any:
        """The same on a fresh load."""
        context = copy.copy(self._context)
        if hasattr(context, "no_compile_layers"):
            context.no_compile_layers = fresh.layers
        return self._run(fresh.model, context)

    def logits(self, model: torch.nn.Module, result: Any) -> Any:
        """What the engine computes from the result outside the step; None where the model gives no logits."""
        compute = getattr(model, "compute_logits", None)
        hidden = result[0] if isinstance(result, tuple) else result
        if compute is None or not isinstance(hidden, torch.Tensor):
            return None
        with torch.inference_mode(), _in_context(copy.copy(self._context)):
            return compute(hidden)

    def _run(self, model: torch.nn.Module, context: Any) -> Any:
        with torch.inference_mode(), _in_context(context):
            output = model(*self._args, **self._kwargs)
        return getattr(output, "tensors", output)  # what a pipeline stage passes on

    def load_inputs(self) -> None:
        """Later steps have written their own inputs into the same buffers."""
        with torch.inference_mode():
            for tensor, content in self._inputs:
                tensor.copy_(content)


class StepCatcher:
    """Catches the arguments of the model's forward during one step of the engine; ``handle.remove()`` ends it.

    ``error`` says why it has no step although the forward ran.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self.step: DecodeStep | None = None
        self.error = ""
        self.handle = model.register_forward_pre_hook(self._called, with_kwargs=True)

    def _called(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self.step is None:
            try:
                self.step = DecodeStep(model, args, dict(kwargs))
            except Exception as error:  # a guest in the engine's forward
                self.error = f"the first decode step could not be kept: {first_line(error)}"


def _forward_context() -> Any:
    module = importlib.import_module("vllm.forward_context")
    return module.get_forward_context() if module.is_forward_context_available() else None


def _in_context(context: Any) -> contextlib.AbstractContextManager[Any]:
    module = importlib.import_module("vllm.forward_context")
    override: Callable[[Any], contextlib.AbstractContextManager[Any]] = module.override_forward_context
    return override(context)


def _is_cache(path: str) -> bool:
    return "kv_cache" in path


@contextlib.contextmanager
def host_state(roots: Mapping[str, object]) -> Iterator[None]:
    """Put back, at the end, the bytes of everything reachable that is no parameter, and the collectives.

    Raises RebindlintError when that is more than a quarter of the free memory.
    """
    tensors: dict[int, torch.Tensor] = {}
    parameters: set[int] = set()
    for record in take_census(roots).records:
        if record.storage is None or record.tensor.is_meta:
            continue
        if record.kind == "parameter":
            parameters.add(record.number)
        else:
            tensors.setdefault(record.number, record.tensor)
    kept = [tensor.detach() for number, tensor in tensors.items() if number not in parameters]
    total = sum(tensor.untyped_storage().nbytes() for tensor in kept)
    free = free_memory(kept)
    if total > _SHARE * free:
        raise RebindlintError(
            f"caches and buffers ({total / 2**30:.1f} GiB) are too large to be put back after a run of our own "
            f"({free / 2**30:.1f} GiB are free); a smaller KV cache helps"
        )
    saved = SavedBytes(kept)
    try:
        with local_collectives():
            yield
    finally:
        with torch.inference_mode():
            saved.restore()


def free_memory(tensors: Iterable[torch.Tensor]) -> float:
    """Bytes that are free where the tensors lie; infinity where that cannot be known."""
    device = next((t.device for t in tensors if t.is_cuda), None)
    if device is not None:
        return float(torch.cuda.mem_get_info(device)[0])
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):  # not Linux: nothing is known
        return float("inf")


_REFUSED_IN_GROUPS: Final = (
    "all_gatherv", "reduce_scatterv", "reduce_scatterv_into_output", "dispatch", "dispatch_router_logits", "combine",
    "combine_into_output", "gather", "broadcast", "broadcast_object", "broadcast_object_list", "broadcast_tensor_dict",
    "send_object", "recv_object", "send_tensor_dict", "recv_tensor_dict", "isend_tensor_dict", "irecv_tensor_dict",
    "barrier", "send", "recv",
)  # fmt: skip
_REFUSED_IN_TORCH: Final = (
    "all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_to_all", "all_to_all_single", "barrier",
    "batch_isend_irecv", "broadcast", "broadcast_object_list", "gather", "irecv", "isend", "recv", "reduce", "reduce_scatter",
    "reduce_scatter_tensor", "scatter", "send",
)  # fmt: skip


@contextlib.contextmanager
def local_collectives() -> Iterator[None]:
    """A run of our own must not wait for other ranks: they need not run one, or as many. Sums and gathers of tensors
    are taken over copies of this rank's own part, which is as good for comparing replay and eager run; any other
    collective raises RebindlintError.
    """
    with contextlib.ExitStack() as undo:
        for owner, name, function in _stand_ins():
            undo.enter_context(_replaced(owner, name, function))
        yield


def _stand_ins() -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    parallel_state = importlib.import_module("vllm.distributed.parallel_state")
    group: Any = getattr(parallel_state, "GroupCoordinator", None)
    if group is not None:
        for name, function in _LOCAL.items():
            yield group, name, function
        for name in _REFUSED_IN_GROUPS:
            yield group, name, _alone_or_refused(getattr(group, name, None), name)
    for name in _REFUSED_IN_TORCH:
        yield torch.distributed, name, functools.partial(_refuse, name)


def _alone_or_refused(original: Any, name: str) -> Callable[..., Any]:
    def stand_in(group: Any, *args: Any, **kwargs: Any) -> Any:
        return original(group, *args, **kwargs) if group.world_size == 1 else _refuse(name)

    return stand_in


def _refuse(name: str, *args: Any, **kwargs: Any) -> Any:
    raise RebindlintError(f"the step needs other ranks ({name}), so it cannot be run again by one of them")


def _sum(group: Any, tensor: torch.Tensor) -> torch.Tensor:
    return tensor if group.world_size == 1 else tensor.clone()


def _gather(group: Any, tensor: torch.Tensor, dim: int = -1) -> torch.Tensor:
    return tensor if group.world_size == 1 else torch.cat([tensor] * group.world_size, dim)


def _scatter(group: Any, tensor: torch.Tensor, dim: int = -1) -> torch.Tensor:
    if group.world_size == 1:
        return tensor
    part: torch.Tensor = tensor.chunk(group.world_size, dim)[group.rank_in_group]
    return part.contiguous()


# vLLM's operators call the variants with an underscore, its layers the others
_LOCAL: Final[dict[str, Callable[..., Any]]] = {
    "all_reduce": _sum,
    "_all_reduce_out_place": _sum,
    "all_gather": _gather,
    "_all_gather_out_place": _gather,
    "reduce_scatter": _scatter,
    "_reduce_scatter_out_place": _scatter,
}


@contextlib.contextmanager
def _replaced(owner: Any, name: str, function: Callable[..., Any]) -> Iterator[None]:
    original = vars(owner).get(name)
    if original is None:
        yield
        return
    setattr(owner, name, function)
    try:
        yield
    finally:
        setattr(owner, name, original)
