"""What torch's functions and tensor methods do to memory: view, keep, allocate, write, or leave the device.

Source: the documentation of torch 2.13. Names in no table that end in one underscore write in place; every other
function of torch that is given or asked for a tensor allocates.
"""

from __future__ import annotations

__all__ = [
    "ALLOCATE",
    "CAST",
    "HOST_ATTRIBUTES",
    "HOST_FUNCTIONS",
    "HOST_METHODS",
    "JOIN",
    "KEEP",
    "KEEP_OR_COPY",
    "NO_WRITE",
    "REORDER",
    "RESIZE",
    "RESTRIDE",
    "SCALAR",
    "SEVERAL",
    "SEVERAL_VIEWS",
    "SIZED",
    "VIEW",
    "ZEROED",
    "is_tensor_name",
]

# the same memory, the same strides or ones that stay contiguous
VIEW = frozenset(
    {
        "view",
        "unsqueeze",
        "squeeze",
        "detach",
        "view_as",
        "unflatten",
        "ravel",
        "flatten",
        "reshape",
        "reshape_as",
        "requires_grad_",
        "detach_",
        "refine_names",
        "alias",
        "squeeze_",
        "unsqueeze_",
    }
)
# the same memory, other strides
RESTRIDE = frozenset(
    {
        "transpose",
        "permute",
        "t",
        "narrow",
        "expand",
        "expand_as",
        "swapaxes",
        "swapdims",
        "movedim",
        "moveaxis",
        "mT",
        "T",
        "H",
        "mH",
        "select",
        "diagonal",
        "unfold",
        "as_strided",
        "adjoint",
        "t_",
        "transpose_",
        "real",
        "imag",
        "broadcast_to",
    }
)
SEVERAL_VIEWS = frozenset(
    {"split", "chunk", "unbind", "tensor_split", "split_with_sizes", "hsplit", "vsplit", "dsplit"}
)
# the tensor itself when nothing has to change
KEEP = frozenset(
    {
        "cuda",
        "xpu",
        "npu",
        "requires_grad",
        "share_memory_",
        "rename_",
        "coalesce",
        "as_subclass",
        "resolve_conj",
    }
)
KEEP_OR_COPY = frozenset({"contiguous"})
CAST = {
    "float": "torch.float32",
    "half": "torch.float16",
    "bfloat16": "torch.bfloat16",
    "double": "torch.float64",
    "int": "torch.int32",
    "long": "torch.int64",
    "short": "torch.int16",
    "char": "torch.int8",
    "byte": "torch.uint8",
    "bool": "torch.bool",
}
# host values that do not depend on contents
HOST_METHODS = frozenset(
    {
        "size",
        "dim",
        "numel",
        "stride",
        "element_size",
        "data_ptr",
        "is_contiguous",
        "ndimension",
        "nelement",
        "get_device",
        "storage_offset",
        "untyped_storage",
        "storage",
        "is_floating_point",
        "is_complex",
        "is_pinned",
        "is_shared",
        "nbytes",
        "is_set_to",
        "is_same_size",
        "type_as_",
        "register_hook",
        "is_signed",
        "backward",
    }
)
HOST_ATTRIBUTES = frozenset(
    {
        "shape",
        "device",
        "ndim",
        "is_meta",
        "itemsize",
        "nbytes",
        "requires_grad",
        "layout",
        "is_cuda",
        "is_cpu",
        "is_sparse",
        "is_xpu",
        "names",
        "grad",
        "grad_fn",
        "is_leaf",
        "is_quantized",
        "_version",
        "is_nested",
    }
)
# host values that are read from the contents
SCALAR = frozenset({"item", "tolist", "__float__", "__int__", "__bool__"})
SEVERAL = frozenset(
    {
        "sort",
        "topk",
        "min",
        "max",
        "kthvalue",
        "mode",
        "median",
        "aminmax",
        "frexp",
        "qr",
        "svd",
        "unique_consecutive",
        "std_mean",
        "var_mean",
        "cummax",
        "cummin",
        "slogdet",
    }
)
NO_WRITE = frozenset(
    {
        "requires_grad_",
        "share_memory_",
        "detach_",
        "rename_",
        "squeeze_",
        "unsqueeze_",
        "t_",
        "transpose_",
        "retain_grad",
    }
)
ALLOCATE = frozenset(
    {
        "empty",
        "zeros",
        "ones",
        "full",
        "arange",
        "tensor",
        "rand",
        "randn",
        "randint",
        "eye",
        "linspace",
        "empty_strided",
        "empty_like",
        "zeros_like",
        "ones_like",
        "full_like",
        "rand_like",
        "randn_like",
        "new_empty",
        "new_zeros",
        "new_ones",
        "new_full",
        "new_tensor",
        "scalar_tensor",
        "randperm",
    }
)
# allocators that are told a size
SIZED = frozenset({"empty", "zeros", "ones", "rand", "randn", "full"})
ZEROED = frozenset({"zeros", "zeros_like", "new_zeros"})
# functions that take a sequence of tensors
JOIN = frozenset(
    {
        "cat",
        "concat",
        "concatenate",
        "stack",
        "hstack",
        "vstack",
        "dstack",
        "column_stack",
        "row_stack",
        "block_diag",
        "broadcast_tensors",
        "pad_sequence",
    }
)
# a result with another number of elements than what it is made of
RESIZE = frozenset({"repeat", "repeat_interleave", "tile", "cat", "concat", "concatenate", "stack", "hstack", "vstack"})
# a result of the shape of what it is made of
REORDER = frozenset({"argsort", "roll", "flip", "fliplr", "flipud", "msort"})
# functions of torch that give no tensor
HOST_FUNCTIONS = (
    "torch.cuda",
    "torch.cpu",
    "torch.mps",
    "torch.cpp",
    "torch.device",
    "torch.finfo",
    "torch.iinfo",
    "torch.is_",
    "torch.distributed",
    "torch.Size",
    "torch.dtype",
    "torch.Stream",
    "torch.library",
    "torch.get_",
    "torch.set_",
    "torch.no_grad",
    "torch.inference_mode",
    "torch.enable_grad",
    "torch.compiler",
    "torch._dynamo",
    "torch.accelerator",
    "torch.xpu",
    "torch.npu",
    "torch.equal",
    "torch.allclose",
    "torch.numel",
    "torch.version",
    "torch.backends",
    "torch.jit",
    "torch.autocast",
    "torch.manual_seed",
    "torch.Generator",
    "torch.save",
    "torch.profiler",
    "torch.promote_types",
    "torch.can_cast",
    "torch.result_type",
    "torch.utils",
    "torch._assert",
    "torch._check",
    "torch.Event",
)

_METHODS = (
    VIEW
    | RESTRIDE
    | SEVERAL_VIEWS
    | KEEP
    | KEEP_OR_COPY
    | CAST.keys()
    | HOST_METHODS
    | SCALAR
    | SEVERAL
    | ALLOCATE
    | {
        "to",
        "clone",
        "cpu",
        "copy_",
        "zero_",
        "fill_",
        "type",
        "sum",
        "mean",
        "abs",
        "amax",
        "amin",
        "div",
        "mul",
        "add",
        "sub",
        "repeat",
        "repeat_interleave",
        "index_select",
        "gather",
        "scatter_",
        "masked_fill",
        "masked_fill_",
        "mul_",
        "div_",
        "add_",
        "sub_",
        "clamp",
        "clamp_",
        "clamp_min",
        "round",
        "reciprocal",
        "pow",
        "exp",
        "log2",
        "cumsum",
        "flip",
        "roll",
        "tile",
        "index_copy_",
        "set_",
        "any",
        "all",
        "argsort",
        "nonzero",
        "bitwise_and",
        "bitwise_or",
        "unsqueeze_",
        "permute_copy",
        "type_as",
        "numpy",
        "swapaxes_",
        "neg",
        "sqrt",
        "rsqrt",
        "square",
        "view",
        "log",
        "max",
        "min",
        "new_empty",
        "to_dense",
        "dequantize",
    }
)
_ATTRIBUTES = (HOST_ATTRIBUTES | {"data", "dtype", "T", "mT", "H", "mH", "real", "imag"}) - {"names", "layout", "grad"}
# names that other objects have too: a call decides, not a look
AMBIGUOUS = frozenset(
    {
        "type",
        "split",
        "sort",
        "max",
        "min",
        "all",
        "any",
        "sum",
        "index",
        "size",
        "select",
        "apply_",
        "float",
        "int",
        "bool",
        "names",
        "storage",
        "view",
        "to",
        "expand",
        "log",
        "add",
        "set_",
        "device",
        "dtype",
        "layout",
        "cpu",
        "cuda",
        "unfold",
        "round",
        "pow",
        "real",
        "repeat",
        "flip",
        "clone",
        "T",
        "tolist",
        "mean",
        "mode",
        "alias",
        "numpy",
        "half",
        "requires_grad_",
        "unbind",
        "register_hook",
        "dim",
        "requires_grad",
        "shape",
        "xpu",
        "npu",
        "tile",
        "roll",
        "chunk",
    }
)


def is_tensor_name(name: str) -> bool:
    """Whether reading this attribute suggests that the thing is a tensor."""
    return name in _METHODS or name in _ATTRIBUTES
