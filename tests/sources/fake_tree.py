"""A tree with just the modules of vLLM that a GPTQ layer on Marlin kernels needs, written out in the smallest form.

What happens in it can be chosen, so that the machinery is tested where vLLM's dependencies are not installed.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["write_tree"]

_MODULES = {
    "vllm/__init__.py": "__version__ = '9.9.9'\n",
    "vllm/_custom_ops.py": """
import torch

def repack(weight, size_k, size_n):
    return torch.ops._C.gptq_marlin_repack(weight, None, size_k, size_n, 4)

def gemm(a, weight, workspace, size_n):
    return torch.ops._C.marlin_gemm(a, weight, workspace, 1, a.shape[0], size_n, a.shape[1])
""",
    "vllm/platforms/__init__.py": "_current_platform = None\n",
    "vllm/platforms/interface.py": """
import enum
from typing import NamedTuple

class PlatformEnum(enum.Enum):
    CUDA = 1

class DeviceCapability(NamedTuple):
    major: int
    minor: int

class Platform:
    pass
""",
    "vllm/triton_utils/__init__.py": """
from types import SimpleNamespace
tl = SimpleNamespace()
triton = SimpleNamespace(language=tl)
""",
    "vllm/config.py": """
import contextlib
from types import SimpleNamespace

def DeviceConfig(device):
    return device

class VllmConfig:
    def __init__(self, device_config):
        self.compilation_config = SimpleNamespace(static_forward_context={})

set_current_vllm_config = contextlib.nullcontext
""",
    "vllm/forward_context.py": """
import contextlib

@contextlib.contextmanager
def set_forward_context(metadata, config):
    yield
""",
    "vllm/distributed.py": """
def init_distributed_environment(*arguments):
    pass

initialize_model_parallel = init_distributed_environment
""",
    "vllm/model_executor/model_loader/reload.py": """
metadata = {}

def record_metadata_for_reloading(model):
    metadata.update({name: p.shape for name, p in model.layer.named_parameters()})

def initialize_layerwise_reload(model):
    layer = model.layer
    layer.kept = {name: p for name, p in layer.named_parameters()}
    layer.make_weights()

def finalize_layerwise_reload(model, model_config):
    layer = model.layer
    layer.quant_method.process_weights_after_loading(layer)
    for name, old in layer.kept.items():
        old.data.copy_(getattr(layer, name))
        layer.register_parameter(name, old)
    del layer.kept
""",
    "vllm/model_executor/layers/linear.py": """
import torch
from torch import nn

class ReplicatedLinear(nn.Module):
    def __init__(self, inputs, outputs, bias, quant_config, params_dtype, prefix):
        super().__init__()
        self.sizes = inputs, outputs
        self.quant_method = quant_config.get_quant_method(self)
        self.make_weights()

    def make_weights(self):
        inputs, outputs = self.sizes
        self.qweight = nn.Parameter(torch.zeros(inputs // 8, outputs, dtype=torch.int32), requires_grad=False)
        self.scales = nn.Parameter(torch.zeros(inputs // 128, outputs), requires_grad=False)
        self.qzeros = nn.Parameter(torch.zeros(inputs // 128, outputs // 8, dtype=torch.int32), requires_grad=False)

    def forward(self, x):
        return self.quant_method.apply(self, x)
""",
    "vllm/model_executor/layers/quantization/auto_gptq.py": """
import os, time
import torch
from vllm import _custom_ops

class MarlinKernel:
    def process(self, layer):
        {process}
        layer.qweight.data = _custom_ops.repack(layer.qweight.data, *layer.sizes)

class Method:
    def __init__(self):
        self.kernel = MarlinKernel()

    def process_weights_after_loading(self, layer):
        self.kernel.process(layer)

    def apply(self, layer, x):
        {apply}

class AutoGPTQConfig:
    def __init__(self, desc_act, **options):
        if desc_act:
            raise ValueError("desc_act is not supported")

    def get_quant_method(self, layer):
        return Method()
""",
}
_PROCESS = "self.workspace = torch.zeros(4)"
_APPLY = "return _custom_ops.gemm(x, layer.qweight, self.kernel.workspace, layer.sizes[1])"


def write_tree(folder: Path, *, process: str = _PROCESS, apply: str = _APPLY, **modules: str) -> Path:
    """``process`` is what the kernel's hook does besides packing, ``apply`` the step; ``modules`` are more modules of
    the package ``vllm``, or others instead.
    """
    for name, text in {**_MODULES, **{f"vllm/{name}.py": text for name, text in modules.items()}}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("{process}", process).replace("{apply}", apply))
    for package in [path.parent for path in folder.glob("vllm/**/*.py")]:
        (package / "__init__.py").touch()
    return folder
