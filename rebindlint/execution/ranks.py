"""How many dimensions tensors have, as far as it is written out: tensors of another rank have another shape for sure."""

from __future__ import annotations

from collections.abc import Sequence

from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.values import Const, ListValue, Tensor, Value

__all__ = ["CHANGING", "differ", "of_element", "of_loaded", "of_sizes", "of_view"]

_SAME = frozenset({"t", "T", "mT", "H", "mH", "transpose", "permute", "swapaxes"})
_RESHAPED = frozenset({"view", "reshape"})
CHANGING = _SAME | _RESHAPED | {"flatten", "ravel", "squeeze", "unsqueeze"}  # views whose rank is told
_REDUCING = frozenset({"max", "min", "amax", "amin", "sum", "mean", "prod"})


def of_view(m: Interpreter, shape: int, made: int, operation: str, args: Sequence[Value]) -> None:
    """Note the rank of what ``operation`` makes of a tensor of a shape."""
    base, more = m.ranks.get(shape, (shape, 0))
    if operation in _SAME:
        m.ranks[made] = base, more
    elif operation in ("flatten", "ravel") and not args:
        m.ranks[made] = 0, 1
    elif operation in _RESHAPED and args and (rank := _written(args)):
        m.ranks[made] = 0, rank
    elif operation in ("unsqueeze", "squeeze") and args:
        m.ranks[made] = base, more + (1 if operation == "unsqueeze" else -1)


def _written(args: Sequence[Value]) -> int:
    """How many sizes are given; 0 where they are not all numbers."""
    sizes = args[0].items if len(args) == 1 and isinstance(args[0], ListValue) and args[0].closed else args
    return len(sizes) if all(isinstance(size, Const) and type(size.value) is int for size in sizes) else 0


def of_element(m: Interpreter, tensor: Tensor, made: Tensor, operation: str) -> None:
    """Note that the largest element, the sum, … of a whole tensor is one number; nobody asks that of one number."""
    if operation in _REDUCING:
        m.ranks[made.shape] = 0, 0
        if m.ranks.get(tensor.shape) != (0, 0):
            m.reduced.add(tensor.shape)


def of_sizes(m: Interpreter, shape: int, args: Sequence[Value], sizes: tuple[Value, ...]) -> None:
    """Note the rank of what an allocator makes, where all sizes are known or there is none."""
    if sizes:
        m.sizes[shape] = sizes
    if sizes or (args and isinstance(args[0], ListValue) and args[0].closed and not args[0].items):
        m.ranks[shape] = 0, len(sizes)


def of_loaded(m: Interpreter, created: int, loaded: int) -> None:
    """What is loaded has the rank that it was created with. Loaders fill one number in, whatever rank it has on either side."""
    if created in m.ranks:
        m.ranks[loaded] = m.ranks[created]
    if created in m.sizes and all(isinstance(size, Const) and size.value == 1 for size in m.sizes[created]):
        m.single.add(loaded)


def differ(m: Interpreter, left: int, right: int) -> bool:
    """Whether two shapes surely differ in how many dimensions they have."""
    if left == right or left in m.single or right in m.single:
        return False
    (base, more), (other, less) = m.ranks.get(left, (left, 0)), m.ranks.get(right, (right, 0))
    if base == other:
        return more != less
    one, another = (base, more) == (0, 0), (other, less) == (0, 0)  # of one element that was made of all of the other
    return one != another and (right if one else left) in m.reduced
