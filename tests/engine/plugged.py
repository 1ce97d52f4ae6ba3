"""Runs in the engine's environment: an engine as somebody else would run it, with the plugin or without.

    python plugged.py REQUEST.json

The request names the checkpoints, the calls to make in turn and the ranks; prints, as JSON, the tokens after each call
and what calls of the worker extension gave.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

PROMPT = [3, 1, 4, 1, 5]


def tokens(llm: Any) -> list[int]:
    from vllm import SamplingParams

    wanted = SamplingParams(max_tokens=4, temperature=0.0, ignore_eos=True, detokenize=False)
    outputs = llm.generate([{"prompt_token_ids": PROMPT}], wanted, use_tqdm=False)
    return list(outputs[0].outputs[0].token_ids)


def load_and_process(worker: Any, checkpoint: str) -> None:
    from rebindlint.runtime.vllm.reload import PATHS

    PATHS["load-and-process"].run(worker, checkpoint)


def make_mortal(worker: Any) -> None:
    """The second rank will die while it loads."""
    if worker.rank == 1:
        worker.model_runner.get_model().load_weights = lambda *args: os._exit(9)


def over_a_sleep(llm: Any, checkpoint: str) -> None:
    """A CPU worker's sleep only warns, and `LLM.sleep` is refused there: what is called are the worker's methods."""
    llm.collective_rpc("sleep", args=(2,))
    llm.collective_rpc("wake_up", args=(["weights"],))
    llm.collective_rpc("reload_weights", kwargs={"weights_path": checkpoint})
    llm.collective_rpc("wake_up", args=(["kv_cache"],))


def through_ipc(llm: Any, checkpoint: str) -> None:
    """The engine's own transfer through handles of shared memory, which a CPU has none of: stand-ins give it the tensors
    that the handles name.
    """
    import torch
    from safetensors.torch import load_file
    from vllm.distributed.weight_transfer import ipc_engine

    weights = load_file(str(Path(checkpoint) / "model.safetensors"))
    ipc_engine.rebuild_cuda_tensor = lambda name, *_: weights[name]
    cuda: Any = torch.cuda
    cuda.get_device_properties = lambda _: SimpleNamespace(uuid="here")
    update = {
        "names": list(weights),
        "dtype_names": [str(tensor.dtype).removeprefix("torch.") for tensor in weights.values()],
        "shapes": [list(tensor.shape) for tensor in weights.values()],
        "ipc_handles": [{"here": (name, *[None] * 6)} for name in weights],
    }
    in_phases(llm, {"packed": False}, update)


def in_phases(llm: Any, connection: dict[str, Any], update: dict[str, Any]) -> None:
    for phase, args in (
        ("init_weight_transfer_engine", (connection,)),
        ("start_weight_update", ()),
        ("update_weights", (update,)),
        ("finish_weight_update", ()),
    ):
        llm.collective_rpc(phase, args=args)


def called(llm: Any, call: str, checkpoint: str) -> Any:
    if call == "over a sleep":
        return over_a_sleep(llm, checkpoint)
    if call == "through ipc":
        return through_ipc(llm, checkpoint)
    if call == "reload_weights":
        return llm.collective_rpc("reload_weights", kwargs={"weights_path": checkpoint})
    if call == "load-and-process":
        return llm.collective_rpc(load_and_process, args=(checkpoint,))
    if call == "weight-transfer":
        return in_phases(llm, {"checkpoint": checkpoint}, {"checkpoint": checkpoint})
    if call == "broken, then whole":
        raised = ""
        try:
            llm.collective_rpc("reload_weights", kwargs={"weights_path": "/nowhere/at/all"})
        except Exception as error:
            raised = type(error).__name__
        llm.collective_rpc("reload_weights", kwargs={"weights_path": checkpoint})
        return raised
    if call == "die in a reload":
        llm.collective_rpc(make_mortal)
        return llm.collective_rpc("reload_weights", kwargs={"weights_path": checkpoint})
    return llm.collective_rpc(call)


def main() -> None:
    request = json.loads(Path(sys.argv[1]).read_text())
    if request.get("plain_linears"):
        import vllm._custom_ops
        import vllm.model_executor.layers.utils

        vllm._custom_ops._supports_onednn = False
        vllm.model_executor.layers.utils.check_cpu_sgl_kernel = lambda *args: False
    if request.get("rebinding"):
        from vllm.model_executor.layers.attention import mla_attention

        mla_attention.replace_parameter = importlib.import_module("rebinding_mla").bind_anew
    options: dict[str, Any] = {}
    if "weight-transfer" in request["calls"]:
        from rebindlint.runtime.vllm.reload import register_transfer

        register_transfer()
        options["weight_transfer_config"] = {"backend": "rebindlint"}
    if "through ipc" in request["calls"]:
        options["weight_transfer_config"] = {"backend": "ipc"}
    if request.get("extension"):
        options["worker_extension_cls"] = "rebindlint.runtime.vllm.WorkerExtension"
    if request.get("ranks", 1) > 1:
        options |= {"tensor_parallel_size": request["ranks"], "distributed_executor_backend": "mp"}
    from vllm import LLM

    llm = LLM(
        model=request["model"], skip_tokenizer_init=True, enforce_eager=True, max_model_len=64, max_num_seqs=2,
        max_num_batched_tokens=64, num_gpu_blocks_override=16, disable_log_stats=True, use_tqdm_on_load=False, **options,
    )  # fmt: skip
    answers = [tokens(llm)]
    runs = importlib.import_module("runs") if request.get("attributes") else None  # beside this script
    before = runs.attributes() if runs else {}
    results: dict[str, Any] = {}
    failed = ""
    for call in request["calls"]:
        try:
            results[call] = called(llm, call, request["reload_from"])
            answers.append(tokens(llm))
        except Exception as error:
            failed = f"{type(error).__name__}: {error}"
            break
    own = sorted(name for name in sys.modules if name.startswith("rebindlint"))
    patched = runs.changed(before, runs.attributes()) if runs else []
    outcome = {"answers": answers, "results": results, "failed": failed, "modules": own, "patched": patched}
    print("RESULT " + json.dumps(outcome), flush=True)
    os._exit(0)  # native threads of the engine may hang on the way out


if __name__ == "__main__":
    main()
