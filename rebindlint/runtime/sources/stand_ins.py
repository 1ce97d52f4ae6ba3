"""Stand-ins for what a CPU and a tree without binaries lack: the CUDA platform, compiled operators, Triton kernels.

They let the tree's own Python take the branches that it takes on a Hopper GPU, while every tensor lies in CPU memory.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import itertools
import sys
import types
from collections.abc import Callable
from typing import Any, Final

import torch

from rebindlint.runtime.sources.reads import note_call
from rebindlint.runtime.sources.stand_in_operators import Namespace, nothing
from rebindlint.runtime.sources.upstream import upstream

__all__ = ["install", "install_modules", "stand_in_platform"]

_BINARIES: Final = (
    "vllm._C", "vllm._moe_C", "vllm._C_stable_libtorch", "vllm._flashmla_C", "vllm._flashmla_extension_C", "vllm._qutlass_C",
    "vllm.cumem_allocator", "vllm.vllm_flash_attn", "vllm.vllm_flash_attn.flash_attn_interface", "vllm.vllm_flash_attn.layers",
    "vllm.vllm_flash_attn.layers.rotary",
)  # fmt: skip
# Packages that some releases import at the top of a module and that no method here uses.
_UNUSED: Final = {"gguf": ("gguf.constants", "gguf.quants")}
_NAMESPACES: Final = ("_C", "_moe_C", "_C_cache_ops", "_vllm_fa2_C", "_vllm_fa3_C", "_flashmla_C")


def install_modules() -> None:
    """Stand-ins for what cannot be imported. To be called before ``vllm`` is."""
    for name in _BINARIES:
        sys.modules[name] = _Binary(name)
    for package, names in _UNUSED.items():
        if importlib.util.find_spec(package) is None:
            sys.modules.update({name: _Binary(name) for name in (package, *names)})
    if importlib.util.find_spec("fsspec") is None and importlib.util.find_spec("huggingface_hub") is not None:
        importlib.import_module("huggingface_hub").__dict__["HfFileSystem"] = nothing  # would want fsspec


def install(capability: tuple[int, int]) -> None:
    """Put every other stand-in in its place, for a GPU of that capability. To be called before anything but ``vllm``
    itself is imported.
    """
    _device.capability = capability
    platform = stand_in_platform()
    upstream("vllm.platforms")._current_platform = platform
    for name in ("empty_cache", "synchronize"):
        setattr(torch.accelerator, name, nothing)
    _stand_in_triton()
    _stand_in_stream()
    upstream("vllm._custom_ops")  # asks while it is imported which operators there are: none
    _tolerant_registration()
    for name in _NAMESPACES:
        setattr(torch.ops, name, Namespace(name, _supported))
    _say_supported(upstream("vllm._custom_ops"))


class _Binary(types.ModuleType):
    """A compiled module: it can be imported, and whatever it is asked for does nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return nothing


# The platform


class _Device:
    """The GPU that the platform stands in for."""

    capability = (9, 0)

    @property
    def has_fp8(self) -> bool:
        return self.capability >= (8, 9)


_device: Final = _Device()


def stand_in_platform() -> Any:
    """An instance of the tree's own ``Platform`` that says it is CUDA and keeps its tensors on the CPU."""
    interface = upstream("vllm.platforms.interface")

    def answer(value: Any) -> classmethod[Any, Any, Any]:
        return classmethod(lambda cls, *args, **kwargs: value() if callable(value) else value)

    body = {
        "_enum": interface.PlatformEnum.CUDA,
        "device_name": "cuda",
        "device_type": "cpu",
        "dispatch_key": "CPU",
        "dist_backend": "gloo",
        "ray_device_key": "GPU",
        "device_control_env_var": "CUDA_VISIBLE_DEVICES",
        "supported_quantization": [],
        "get_device_capability": answer(lambda: interface.DeviceCapability(*_device.capability)),
        "get_device_name": answer("stand-in for a GPU"),
        "get_device_uuid": answer("GPU-0"),
        "get_device_total_memory": answer(80 << 30),
        "num_compute_units": answer(132),
        "supports_fp8": answer(lambda: _device.has_fp8),
        "import_kernels": answer(None),
        "check_and_update_config": answer(None),
        "is_fully_connected": answer(True),
        "get_punica_wrapper": answer(""),
        "opaque_attention_op": answer(True),
        "get_attn_backend_cls": answer("vllm.v1.attention.backends.mla.triton_mla.TritonMLABackend"),
    }
    return type("StandInCuda", (interface.Platform,), body)()


# What the tree asks before it calls an operator


def _supported(*_: object, **__: object) -> bool:
    return _device.has_fp8  # the questions are about FP8 and newer formats


def _say_supported(operators: Any) -> None:
    """Some of the tree's questions about its own binary were answered when it was imported."""
    for name in dir(operators):
        if (
            name.endswith("_supports_fp8")
            or "_supported" in name
            or (name.startswith("cutlass_") and "support" in name)
        ):
            setattr(operators, name, _supported)


def _tolerant_registration() -> None:
    """Shape functions for operators that do not exist are dropped rather than refused."""
    register = torch.library.register_fake

    def tolerant(name: Any, function: Any = None, /, **options: Any) -> Any:
        def decorate(inner: Any) -> Any:
            try:
                return register(name, inner, **options)
            except RuntimeError:
                return inner

        return decorate if function is None else decorate(function)

    torch.library.register_fake = tolerant


class _Stream:
    cuda_stream = 0


def _stand_in_stream() -> None:
    """Memory that is kept for each stream: there is one stream."""
    with contextlib.suppress(ImportError, AttributeError):
        upstream("vllm.utils.torch_utils")._current_stream_tls.value = _Stream()


# Triton


class _Kernel:
    """A Triton kernel: it can be launched, and notes the tensors that it was given."""

    def __init__(self, function: Any) -> None:
        self.__name__ = getattr(function, "__name__", "kernel")
        self.__doc__ = getattr(function, "__doc__", None)
        self.fn = function
        self._names = tuple(inspect.signature(function).parameters)

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return self._launch

    def _launch(self, *args: Any, **kwargs: Any) -> None:
        note_call(f"triton.{self.__name__}", itertools.chain(zip(self._names, args, strict=False), kwargs.items()))


_TYPES: Final = ("bfloat16", "float16", "float32", "float8e4nv", "float8e5", "int8", "int16", "int32", "int64", "uint8")


def _stand_in_triton() -> None:
    triton = upstream("vllm.triton_utils", "triton")

    def jit(function: Any = None, **_: Any) -> Any:
        return _Kernel if function is None else _Kernel(function)

    triton.jit = jit
    for name, value in (("next_power_of_2", _next_power_of_2), ("cdiv", lambda a, b: -(-a // b))):
        if not hasattr(triton, name):
            setattr(triton, name, value)
    for language in (triton.language, upstream("vllm.triton_utils", "tl")):
        for name in _TYPES:
            if not hasattr(language, name):
                setattr(language, name, name)


def _next_power_of_2(number: int) -> int:
    return 1 << max(number - 1, 0).bit_length()
