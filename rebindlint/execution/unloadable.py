"""Parameters that the first run left in another layout than the checkpoint has them in."""

from __future__ import annotations

from rebindlint.execution import ranks
from rebindlint.execution.cells import Captured
from rebindlint.execution.compare import current
from rebindlint.execution.dtypes import is_concrete
from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.twice import Outcome
from rebindlint.execution.values import Obj, Tensor

__all__ = ["laid_out_otherwise"]

_NUMERIC = frozenset({"torch.float16", "torch.bfloat16", "torch.float32", "torch.float64"})
_WIDER = frozenset({("torch.int8", "torch.int32"), ("torch.uint8", "torch.int32"), ("torch.int32", "torch.int64")})


def laid_out_otherwise(outcome: Outcome) -> frozenset[str]:
    """The paths of loaded parameters that the first run gave new memory of a layout that no loader can write the checkpoint into.

    What the second run made of them goes by what the first run left: a helper that copies where dtype and shape agree found
    them to agree. Whoever loads again has to give them the checkpoint's dtype and shape back before, and then they differ as
    in the first run.
    """
    if not outcome.completed:
        return frozenset()
    return frozenset(cell.path for cell in outcome.captured or () if _is_other(outcome.interpreter, cell))


def _is_other(m: Interpreter, cell: Captured) -> bool:
    holder, now = cell.last.holder, current(cell.last)
    if not (cell.registered and cell.tensor.is_parameter and cell.storage.born == 1 and cell.epochs):
        return False
    if not isinstance(holder, Obj) or not isinstance(now, Tensor) or now.storage is not cell.storage:
        return False
    before = holder.initial.get(str(cell.last.key))
    if before is None:
        return False
    return _is_other_dtype(m, before[0], cell.dtype) or (bool(before[0]) and ranks.differ(m, before[1], cell.shape))


def _is_other_dtype(m: Interpreter, loaded: str, left: str) -> bool:
    """Whether what is loaded cannot be copied into it: a loader converts plain numbers, and no packed or reinterpreted ones."""
    if not loaded or not is_concrete(left) or loaded == left:
        return False
    if not is_concrete(loaded):
        return (loaded, left) in m.oracle.reinterpreted
    return not (loaded in _NUMERIC and left in _NUMERIC) and (loaded, left) not in _WIDER
