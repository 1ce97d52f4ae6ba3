"""# uninitialised (RT105)

## What it does

Reports a tensor that after the reload holds memory which the reload allocated and never wrote. Uninitialised
floating-point allocations made during the reload are filled with NaN bytes (`0xFF`), so that what was
forgotten shows.

## Why is this bad

Without the filling the tensor holds whatever was in that memory: sometimes the right old weights, sometimes
garbage. The result is wrong now and then, and without any error.

Reported are registered parameters and buffers and tensors that the captured step reads; a workspace that the
step writes itself is not.

Filled is what `torch.empty`, `empty_like`, `empty_strided`, `empty_permuted` and the tensors' `new_empty` and
`new_empty_strided` give, wherever they are called in Python. Not filled is what native code, TorchScript and code
that is compiled already allocate for themselves, what `torch.Tensor(size)` and `resize_` give, and what comes from a
name that was imported before (`from torch import empty`).

## Example

A checkpoint lacks one tensor of a layer. The loader materialises all tensors of the layer with `torch.empty`,
loads what there is, and copies everything over the good tensors.

## Use instead

Write every tensor that is allocated, or refuse the reload when one is missing.

## Fix safety

There is no automatic fix.

## See also

RT104, RT110
"""

from __future__ import annotations

from typing import Final

from rebindlint.model import Severity
from rebindlint.runtime.codes import Code

CODE: Final = Code(
    "RT105",
    "uninitialised",
    Severity.ERROR,
    "junk",
    "the reload left memory in the model that nothing has written",
)
