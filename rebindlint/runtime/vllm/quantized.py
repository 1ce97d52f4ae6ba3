"""How quantised checkpoints store linear weights: GPTQ and AWQ with 4 bits, and 8-bit weights with 8-bit activations."""

from __future__ import annotations

from typing import Any, Final

import torch

__all__ = ["awq", "gptq", "w8a8"]

_GROUP: Final = 128
_BITS: Final = 4
_PER_WORD: Final = 32 // _BITS
_AWQ_ORDER: Final = (0, 2, 4, 6, 1, 3, 5, 7)

Tensors = dict[str, torch.Tensor]


def _is_linear(name: str) -> bool:
    return name.endswith("_proj.weight")


def w8a8(tensors: Tensors) -> tuple[Tensors, dict[str, Any]]:
    """One symmetric scale a row for weights, one a token for activations."""
    out: Tensors = {}
    for name, weight in tensors.items():
        if not _is_linear(name):
            out[name] = weight
            continue
        scale = weight.float().abs().amax(dim=1, keepdim=True) / 127
        out[name] = (weight.float() / scale).round().clamp(-128, 127).to(torch.int8)
        out[name + "_scale"] = scale.to(torch.bfloat16)
    eight_bits = {"num_bits": 8, "type": "int", "symmetric": True}
    group = {
        "targets": ["Linear"],
        "weights": {**eight_bits, "strategy": "channel", "dynamic": False},
        "input_activations": {**eight_bits, "strategy": "token", "dynamic": True},
        "output_activations": None,
    }
    return out, {
        "quant_method": "compressed-tensors",
        "format": "int-quantized",
        "quantization_status": "compressed",
        "ignore": ["lm_head"],
        "config_groups": {"group_0": group},
    }


def gptq(tensors: Tensors) -> tuple[Tensors, dict[str, Any]]:
    out: Tensors = {}
    for name, weight in tensors.items():
        if not _is_linear(name):
            out[name] = weight
            continue
        values, scales = _four_bits(weight)
        stem = name.removesuffix("weight")
        inputs, outputs = values.shape
        out[stem + "qweight"] = _packed(values, dim=0)
        out[stem + "scales"] = scales.to(torch.bfloat16)
        out[stem + "qzeros"] = _packed(torch.full((inputs // _GROUP, outputs), 7), dim=1)  # the method stores zero - 1
        out[stem + "g_idx"] = (torch.arange(inputs) // _GROUP).int()
    return out, {
        "quant_method": "gptq",
        "bits": _BITS,
        "group_size": _GROUP,
        "desc_act": False,
        "sym": True,
        "lm_head": False,
        "checkpoint_format": "gptq",
    }


def awq(tensors: Tensors) -> tuple[Tensors, dict[str, Any]]:
    out: Tensors = {}
    for name, weight in tensors.items():
        if not _is_linear(name):
            out[name] = weight
            continue
        values, scales = _four_bits(weight)
        stem = name.removesuffix("weight")
        inputs, outputs = values.shape
        out[stem + "qweight"] = _packed(values, dim=1, order=_AWQ_ORDER)
        out[stem + "scales"] = scales.to(torch.bfloat16)
        out[stem + "qzeros"] = _packed(torch.full((inputs // _GROUP, outputs), 8), dim=1, order=_AWQ_ORDER)
    return out, {"quant_method": "awq", "bits": _BITS, "group_size": _GROUP, "zero_point": True, "version": "gemm"}


def _four_bits(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Values 0 to 15 around 8 as [inputs, outputs], and one scale for each group of inputs."""
    by_input = weight.float().t()
    inputs, outputs = by_input.shape
    groups = by_input.reshape(inputs // _GROUP, _GROUP, outputs)
    scales = groups.abs().amax(dim=1) / 7
    values = (groups / scales[:, None]).round().clamp(-8, 7) + 8
    return values.reshape(inputs, outputs).to(torch.int64), scales


def _packed(values: torch.Tensor, dim: int, order: tuple[int, ...] = tuple(range(_PER_WORD))) -> torch.Tensor:
    """Eight neighbours along ``dim`` in one 32-bit word, the lowest bits first, in the given order."""
    shape = list(values.shape)
    shape[dim : dim + 1] = [shape[dim] // _PER_WORD, _PER_WORD]
    words = values.to(torch.int64).reshape(shape)
    parts = [words.select(dim + 1, position) << (_BITS * place) for place, position in enumerate(order)]
    packed = torch.stack(parts).sum(dim=0)
    return ((packed + 2**31) % 2**32 - 2**31).to(torch.int32)
