"""Tiny checkpoints with random weights, in pairs: what to load first and what to load again.

    python -m rebindlint.runtime.vllm.tiny DIR --kind gptq

writes ``DIR/v1`` and ``DIR/v2``, two checkpoints of one architecture, a few megabytes each, that the engine loads
without a tokenizer. Needs torch and safetensors, which vLLM brings along.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
import torch

from rebindlint.model import RebindlintError
from rebindlint.runtime.vllm.quantized import awq, gptq, w8a8

__all__ = ["KINDS", "Kind", "write_checkpoint", "write_pair"]

Tensors = dict[str, torch.Tensor]

_LAYERS: Final = 2
_HIDDEN: Final = 256  # two quantisation groups of 128
_VOCABULARY: Final = 256
_HEAD: Final = 64
_HEADS: Final = 4
_KV_HEADS: Final = 2
_EXPERTS: Final = 4
_EXPERT_WIDTH: Final = 128
# The sizes of latent attention for which the engine has kernels on a CPU.
_LATENT, _ROPE, _NOPE, _VALUE, _MLA_HEADS = 512, 64, 128, 128, 2

_SHARED: Final[dict[str, Any]] = {
    "hidden_size": _HIDDEN,
    "num_hidden_layers": _LAYERS,
    "vocab_size": _VOCABULARY,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_LLAMA: Final[dict[str, Any]] = {
    **_SHARED,
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "intermediate_size": _HIDDEN,
    "num_attention_heads": _HEADS,
    "num_key_value_heads": _KV_HEADS,
    "head_dim": _HEAD,
}
_MIXTRAL: Final[dict[str, Any]] = {
    **_LLAMA,
    "architectures": ["MixtralForCausalLM"],
    "model_type": "mixtral",
    "intermediate_size": _EXPERT_WIDTH,
    "num_local_experts": _EXPERTS,
    "num_experts_per_tok": 2,
    "sliding_window": None,
}
_DEEPSEEK: Final[dict[str, Any]] = {
    **_SHARED,
    "architectures": ["DeepseekV2ForCausalLM"],
    "model_type": "deepseek_v2",
    "intermediate_size": _HIDDEN,
    "moe_intermediate_size": _EXPERT_WIDTH,
    "num_attention_heads": _MLA_HEADS,
    "num_key_value_heads": _MLA_HEADS,
    "kv_lora_rank": _LATENT,
    "q_lora_rank": None,
    "qk_nope_head_dim": _NOPE,
    "qk_rope_head_dim": _ROPE,
    "v_head_dim": _VALUE,
    "n_routed_experts": _EXPERTS,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "first_k_dense_replace": _LAYERS,  # every layer is dense
    "moe_layer_freq": 1,
    "n_group": 1,
    "topk_group": 1,
    "topk_method": "greedy",
    "scoring_func": "softmax",
    "norm_topk_prob": False,
    "routed_scaling_factor": 1.0,
    "aux_loss_alpha": 0.0,
}


@dataclass(frozen=True, slots=True)
class Kind:
    """What one kind of checkpoint consists of; ``quantize`` turns linear weights into what the method stores."""

    summary: str
    config: dict[str, Any]
    shapes: Callable[[], Iterator[tuple[str, tuple[int, ...]]]]
    quantize: Callable[[Tensors], tuple[Tensors, dict[str, Any]]] | None = None


def _embeddings(*, head: bool = True) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield "model.embed_tokens.weight", (_VOCABULARY, _HIDDEN)
    yield "model.norm.weight", (_HIDDEN,)
    if head:
        yield "lm_head.weight", (_VOCABULARY, _HIDDEN)


def _norms(layer: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{layer}.input_layernorm.weight", (_HIDDEN,)
    yield f"{layer}.post_attention_layernorm.weight", (_HIDDEN,)


def _attention(layer: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{layer}.self_attn.q_proj.weight", (_HEADS * _HEAD, _HIDDEN)
    yield f"{layer}.self_attn.k_proj.weight", (_KV_HEADS * _HEAD, _HIDDEN)
    yield f"{layer}.self_attn.v_proj.weight", (_KV_HEADS * _HEAD, _HIDDEN)
    yield f"{layer}.self_attn.o_proj.weight", (_HIDDEN, _HEADS * _HEAD)


def _latent_attention(layer: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{layer}.self_attn.q_proj.weight", (_MLA_HEADS * (_NOPE + _ROPE), _HIDDEN)
    yield f"{layer}.self_attn.kv_a_proj_with_mqa.weight", (_LATENT + _ROPE, _HIDDEN)
    yield f"{layer}.self_attn.kv_a_layernorm.weight", (_LATENT,)
    yield f"{layer}.self_attn.kv_b_proj.weight", (_MLA_HEADS * (_NOPE + _VALUE), _LATENT)
    yield f"{layer}.self_attn.o_proj.weight", (_HIDDEN, _MLA_HEADS * _VALUE)


def _dense(layer: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    for name in ("gate_proj", "up_proj", "down_proj"):
        yield f"{layer}.mlp.{name}.weight", (_HIDDEN, _HIDDEN)


def _experts(layer: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{layer}.block_sparse_moe.gate.weight", (_EXPERTS, _HIDDEN)
    for expert in range(_EXPERTS):
        yield f"{layer}.block_sparse_moe.experts.{expert}.w1.weight", (_EXPERT_WIDTH, _HIDDEN)
        yield f"{layer}.block_sparse_moe.experts.{expert}.w2.weight", (_HIDDEN, _EXPERT_WIDTH)
        yield f"{layer}.block_sparse_moe.experts.{expert}.w3.weight", (_EXPERT_WIDTH, _HIDDEN)


def _model(
    attention: Callable[[str], Iterator[tuple[str, tuple[int, ...]]]],
    mlp: Callable[[str], Iterator[tuple[str, tuple[int, ...]]]],
    *,
    head: bool = True,
) -> Callable[[], Iterator[tuple[str, tuple[int, ...]]]]:
    def shapes() -> Iterator[tuple[str, tuple[int, ...]]]:
        yield from _embeddings(head=head)
        for number in range(_LAYERS):
            layer = f"model.layers.{number}"
            yield from _norms(layer)
            yield from attention(layer)
            yield from mlp(layer)

    return shapes


_LLAMA_SHAPES: Final = _model(_attention, _dense)
KINDS: Final[dict[str, Kind]] = {
    "llama": Kind("dense, unquantised", _LLAMA, _LLAMA_SHAPES),
    "llama-tied": Kind(
        "dense, output weights tied to the embeddings",
        {**_LLAMA, "tie_word_embeddings": True},
        _model(_attention, _dense, head=False),
    ),
    "gptq": Kind("dense, GPTQ with 4 bits in groups of 128", _LLAMA, _LLAMA_SHAPES, gptq),
    "awq": Kind("dense, AWQ with 4 bits in groups of 128", _LLAMA, _LLAMA_SHAPES, awq),
    "w8a8": Kind("dense, 8-bit weights and activations", _LLAMA, _LLAMA_SHAPES, w8a8),
    "mla": Kind("dense with latent attention", _DEEPSEEK, _model(_latent_attention, _dense)),
    "mixtral": Kind("mixture of experts, unquantised", _MIXTRAL, _model(_attention, _experts)),
}


def _random(shapes: Iterator[tuple[str, tuple[int, ...]]], seed: int) -> Tensors:
    """Weights large enough that every layer changes the result, norms near one."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: (0.15 * torch.randn(shape, generator=generator) if len(shape) > 1 else 1 + 0.2 * torch.randn(shape, generator=generator)).to(torch.bfloat16)
        for name, shape in shapes
    }  # fmt: skip


def write_checkpoint(folder: Path, kind: str, *, seed: int, without: Sequence[str] = ()) -> None:
    """Write config and weights of one checkpoint; ``without`` names tensors to leave out.

    Raises RebindlintError for an unknown kind, a name that the checkpoint does not have, a folder that cannot be
    written, or without safetensors.
    """
    if kind not in KINDS:
        raise RebindlintError(f"unknown kind of checkpoint {kind!r}; use one of {', '.join(KINDS)}")
    try:
        from safetensors.torch import save_file
    except ImportError as error:
        raise RebindlintError("checkpoints are written with safetensors, which vLLM brings along") from error
    chosen = KINDS[kind]
    tensors, config = _random(chosen.shapes(), seed), dict(chosen.config)
    if chosen.quantize is not None:
        tensors, config["quantization_config"] = chosen.quantize(tensors)
    for name in without:
        if name not in tensors:
            raise RebindlintError(f"the {kind} checkpoint has no tensor {name}")
        del tensors[name]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
    except OSError as error:
        raise RebindlintError(f"cannot write {folder}: {error.strerror or error}") from error


def write_pair(folder: Path, kind: str, *, without: Sequence[str] = ()) -> tuple[Path, Path]:
    """``folder/v1`` and ``folder/v2`` with different weights; v2 lacks ``without``. Raises as `write_checkpoint`."""
    first, second = folder / "v1", folder / "v2"
    write_checkpoint(second, kind, seed=2, without=without)  # first, because a wrong name leaves nothing behind then
    write_checkpoint(first, kind, seed=1)
    return first, second


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--kind", type=click.Choice(list(KINDS)), default="llama", show_default=True)
@click.option("--without", multiple=True, metavar="TENSOR", help="Leave this tensor out of the second checkpoint.")
def main(folder: Path, kind: str, without: tuple[str, ...]) -> None:
    """Write two tiny checkpoints, FOLDER/v1 and FOLDER/v2."""
    try:
        first, second = write_pair(folder, kind, without=without)
    except RebindlintError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{first} and {second}: {KINDS[kind].summary}")


if __name__ == "__main__":
    main(prog_name="python -m rebindlint.runtime.vllm.tiny")
