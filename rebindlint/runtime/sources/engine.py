"""The little of an engine that a layer needs around it: a configuration, a process group of one, a forward context."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import torch

from rebindlint.runtime.sources.upstream import upstream

__all__ = ["DTYPE", "NOPE", "RANK", "ROPE", "VALUE", "Engine", "Options"]

DTYPE: Final = torch.bfloat16
# The sizes of DeepSeek's latent attention: backends support no others.
NOPE: Final = 128
ROPE: Final = 64
VALUE: Final = 128
RANK: Final = 512


class Options(SimpleNamespace):
    """A configuration or metadata object of the engine; what is not set is None, because newer releases ask for more."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


class Engine:
    """Start one a process, after the stand-ins are installed."""

    def __init__(self) -> None:
        config = upstream("vllm.config")
        self.config = config.VllmConfig(device_config=config.DeviceConfig(device="cpu"))
        described = SimpleNamespace(
            model_type="mixtral",
            architectures=["MixtralForCausalLM"],
            qk_nope_head_dim=NOPE,
            qk_rope_head_dim=ROPE,
            v_head_dim=VALUE,
            kv_lora_rank=RANK,
        )
        self.model_config = Options(
            dtype=DTYPE,
            is_moe=False,
            quantization=None,
            hf_text_config=described,
            hf_config=described,
            max_model_len=128,
            use_mla=True,
            enforce_eager=True,
            model="",
        )
        self.config.__dict__["model_config"] = self.model_config  # its checks want a real checkpoint
        with self._current():
            self._start_process_group()

    @contextlib.contextmanager
    def _current(self) -> Iterator[None]:
        with upstream("vllm.config").set_current_vllm_config(self.config):
            yield

    @staticmethod
    def _start_process_group() -> None:
        distributed = upstream("vllm.distributed")
        meeting = Path(tempfile.mkdtemp(prefix="rebindlint-")) / "group"
        distributed.init_distributed_environment(1, 0, f"file://{meeting}", 0, "gloo")
        distributed.initialize_model_parallel(1, 1)
        with contextlib.suppress(ImportError):  # experts of newer releases share scratch memory
            upstream("vllm.v1.worker.workspace").init_workspace_manager(torch.device("cpu"))

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """What building, loading and reloading run in."""
        default = torch.get_default_dtype()
        torch.set_default_dtype(DTYPE)
        try:
            with self._current(), torch.no_grad():
                yield
        finally:
            torch.set_default_dtype(default)

    @contextlib.contextmanager
    def forward(self) -> Iterator[None]:
        """What one step runs in."""
        with upstream("vllm.forward_context").set_forward_context(None, self.config):
            yield

    def forget_layers(self) -> None:
        """Layers register themselves by name; the next scenario may use the same names."""
        compilation: Any = self.config.compilation_config
        for name in ("static_forward_context", "static_all_moe_layers"):
            registry = getattr(compilation, name, None)
            if registry is not None:
                registry.clear()
