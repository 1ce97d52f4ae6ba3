"""Multi-head latent attention: W_UK_T and W_UV are derived from kv_b_proj after every load."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from rebindlint.runtime.sources.engine import DTYPE, NOPE, RANK, ROPE, VALUE, Options
from rebindlint.runtime.sources.methods.fp8 import BLOCK, fp8_configuration
from rebindlint.runtime.sources.scenario import Scenario, load_parameters, random_tensor
from rebindlint.runtime.sources.upstream import first_upstream, upstream

__all__ = ["scenarios"]

HEADS: Final = 16
ROWS: Final = HEADS * (NOPE + VALUE)
BLOCK_SIZE: Final = 16  # slots of a block of the KV cache


def scenarios() -> list[Scenario]:
    return [
        _scenario("plain kv_b_proj", lambda: None, _plain),
        _scenario("FP8 kv_b_proj", lambda: fp8_configuration(block=True, static=False), _quantised),
    ]


def _scenario(
    variant: str, quantisation: Callable[[], Any], weights: Callable[[int], dict[str, torch.Tensor]]
) -> Scenario:
    return Scenario(
        variant,
        build=lambda: _layer(quantisation()),
        load=lambda layer, version: load_parameters(_projection(layer), weights(version)),
        process=_process,
        hook=lambda layer: layer.process_weights_after_loading,
        step=_step,
    )


def _projection(layer: torch.nn.Module) -> Any:
    return layer.kv_b_proj


def _plain(version: int) -> dict[str, torch.Tensor]:
    return {"weight": random_tensor(ROWS, RANK, seed=version)}


def _quantised(version: int) -> dict[str, torch.Tensor]:
    return {
        "weight": random_tensor(ROWS, RANK, seed=version, dtype=torch.float8_e4m3fn),
        "weight_scale_inv": random_tensor(ROWS // BLOCK, RANK // BLOCK, seed=version, dtype=torch.float32).abs(),
    }


def _layer(quantisation: Any) -> torch.nn.Module:
    projection = upstream("vllm.model_executor.layers.linear").ColumnParallelLinear(
        RANK, ROWS, bias=False, quant_config=quantisation, params_dtype=DTYPE, prefix="layer.kv_b_proj"
    )
    make = first_upstream("vllm.model_executor.layers.attention.mla_attention:MLAAttention")
    layer: torch.nn.Module = make(
        num_heads=HEADS,
        scale=(NOPE + ROPE) ** -0.5,
        qk_nope_head_dim=NOPE,
        qk_rope_head_dim=ROPE,
        v_head_dim=VALUE,
        q_lora_rank=None,
        kv_lora_rank=RANK,
        kv_b_proj=projection,
        prefix="layer",
    )
    return layer


def _process(layer: torch.nn.Module) -> None:
    """In the order of an engine: linear layers, then attention."""
    projection = _projection(layer)
    projection.quant_method.process_weights_after_loading(projection)
    hook: Any = layer.process_weights_after_loading
    hook(DTYPE)


def _step(layer: torch.nn.Module) -> Any:
    """One decode step of two sequences, past the custom operator that would fetch its own metadata."""
    metadata = Options(
        num_actual_tokens=2,
        num_decodes=2,
        num_decode_tokens=2,
        num_prefills=0,
        prefill=None,
        max_seq_len=8,
        max_query_len=1,
        causal=True,
        slot_mapping=torch.zeros(2, dtype=torch.int64),
        decode=Options(
            block_table=torch.zeros(2, 1, dtype=torch.int32),
            seq_lens=torch.ones(2, dtype=torch.int32),
            dcp_tot_seq_lens=None,
        ),
    )
    step: Any = layer.forward_impl
    return step(
        torch.zeros(2, HEADS, NOPE + ROPE, dtype=DTYPE),
        torch.zeros(2, RANK, dtype=DTYPE),
        torch.zeros(2, 1, ROPE, dtype=DTYPE),
        torch.zeros(4, BLOCK_SIZE, RANK + ROPE, dtype=DTYPE),
        metadata,
        torch.zeros(2, HEADS * VALUE, dtype=DTYPE),
    )
