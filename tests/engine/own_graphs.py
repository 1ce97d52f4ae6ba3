"""Runs in the engine's environment: vLLM's own CUDAGraphWrapper captures a decode step, weights are reloaded, and it
replays.

    python own_graphs.py MODEL RELOAD_FROM [rebinding]
"""

from __future__ import annotations

import copy
import importlib
import json
import os
import sys
from typing import Any

import torch


def main() -> None:
    model_folder, reload_from, *options = sys.argv[1:]
    from vllm.compilation.cuda_graph import CUDAGraphWrapper
    from vllm.config import CUDAGraphMode
    from vllm.forward_context import BatchDescriptor, override_forward_context

    from rebindlint.runtime.vllm.engine import running
    from rebindlint.runtime.vllm.stand_ins import cuda_graphs_on_cpu
    from rebindlint.runtime.vllm.step import StepTap

    if "rebinding" in options:
        from vllm.model_executor.layers.attention import mla_attention

        mla_attention.replace_parameter = importlib.import_module("rebinding_mla").bind_anew
    with running(model_folder, plain=True) as engine:
        worker = engine._llm.llm_engine.model_executor.driver_worker.worker
        model = worker.model_runner.get_model()
        tap = StepTap(model)
        engine.generate()
        step = tap.frozen(worker.vllm_config)
        context = copy.copy(step.context)
        context.cudagraph_runtime_mode = CUDAGraphMode.FULL
        context.batch_descriptor = BatchDescriptor(num_tokens=1)

        def call(function: Any) -> torch.Tensor:
            with torch.inference_mode(), override_forward_context(copy.copy(context)):
                result: torch.Tensor = function(*step.args, **step.kwargs)
            return result.clone()

        with cuda_graphs_on_cpu() as graphs:
            wrapper = CUDAGraphWrapper(model.forward, worker.vllm_config, CUDAGraphMode.FULL)
            captured, eager, replayed = call(wrapper), call(model.forward), call(wrapper)
            engine.call(_reload, reload_from)
            eager_after, replayed_after = call(model.forward), call(wrapper)
    (graph,) = graphs
    assert graph.capture is not None
    result = {
        "operators": graph.capture.operators,
        "entries": len(wrapper.concrete_cudagraph_entries),
        "before": torch.equal(captured, eager) and torch.equal(replayed, eager),
        "changed": not torch.equal(eager, eager_after),
        "after": torch.equal(replayed_after, eager_after),
    }
    print("RESULT " + json.dumps(result), flush=True)
    os._exit(0)


def _reload(worker: Any, folder: str) -> None:
    worker.reload_weights(weights_path=folder)


if __name__ == "__main__":
    main()
