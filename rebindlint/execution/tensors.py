"""Attributes, methods and functions of tensors."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from rebindlint.execution import ranks
from rebindlint.execution import torch_table as table
from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.values import (
    BoundMethod,
    Const,
    External,
    ListValue,
    Tensor,
    Unknown,
    Value,
    is_stable,
    label_of,
)
from rebindlint.model import Binding

__all__ = [
    "AMBIGUOUS",
    "attribute",
    "cast",
    "copy_into",
    "dtype_label",
    "element",
    "function",
    "has_no_elements",
    "is_concrete",
    "is_tensor_name",
    "method",
    "move",
    "resized",
    "view",
]

# attributes that decide between tensor and something else only when the thing is known to be a tensor
AMBIGUOUS = table.AMBIGUOUS - {"dtype", "device", "shape", "T", "requires_grad"}
is_tensor_name = table.is_tensor_name


def attribute(m: Interpreter, tensor: Tensor, name: str, node: ast.AST) -> Value:
    if name in tensor.attributes:
        return tensor.attributes[name]
    if name == "data":
        return tensor.alias()
    if name == "dtype":
        return Unknown(tensor.dtype)
    if name == "shape":
        return Unknown(f"shape{tensor.shape}")
    if name == "device":
        return Unknown("device")
    if name == "is_meta":
        return Const(False)
    if name in ("T", "mT", "H", "mH"):
        return view(m, tensor, name, (), strided=True)
    if name in ("ndim", "nbytes", "itemsize"):
        return Unknown(
            f"shape{tensor.shape}.dim" if name == "ndim" else f"dtype {tensor.dtype} shape{tensor.shape}.{name}"
        )
    if name in table.HOST_ATTRIBUTES:
        return Unknown(f"tensor.{name}")
    if name == "__dict__":
        return ListValue([], closed=True)
    if table.is_tensor_name(name) or name.endswith("_"):
        return BoundMethod(tensor, name)
    return (
        BoundMethod(tensor, name)
        if tensor.certain and not tensor.home
        else Unknown(f"{tensor.home or 'tensor'}.{name}", None)
    )


# ---- views


def view(
    m: Interpreter,
    tensor: Tensor,
    operation: str,
    args: Sequence[Value],
    *,
    strided: bool | None = None,
    dtype: str = "",
) -> Tensor:
    """A tensor over the same memory. That it can be viewed shows that it is one."""
    labels = tuple(m.term(a) for a in args)
    undone = m.undone(tensor.path, operation, labels)
    if undone is not None:
        return Tensor(
            tensor.storage, tensor.dtype, m.terms.of("shape-of", tensor.shape, operation, labels), path=undone
        )
    path = m.path(tensor.path, operation, labels)
    shape = m.terms.of("shape-of", tensor.shape, operation, labels)
    if operation in ranks.CHANGING:
        ranks.of_view(m, tensor.shape, shape, operation, args)
    return Tensor(
        tensor.storage, dtype or tensor.dtype, shape, path=path, strided=tensor.strided if strided is None else strided
    )


def element(m: Interpreter, tensor: Tensor, index: Value | None) -> Tensor:
    """``tensor[index]``: a view, unless the index is a tensor, or one of several is."""
    if isinstance(index, Tensor) or (isinstance(index, ListValue) and any(isinstance(i, Tensor) for i in index.items)):
        return m.fresh("gather", [tensor, index], dtype=tensor.dtype)
    return view(
        m, tensor, "[]", [index] if index is not None else [], strided=not isinstance(index, Const) or tensor.strided
    )


def _copy(m: Interpreter, tensor: Tensor, dtype: str = "", *, on_host: bool = False) -> Tensor:
    """Newly allocated memory with the same values."""
    content = m.term(tensor)
    storage = m.storage(
        content if isinstance(content, int) else 0,
        tensor.storage.epochs,
        sources=tensor.storage.sources | {tensor.storage.number},
    )
    storage.on_host = on_host or tensor.storage.on_host
    storage.empty = tensor.storage.empty
    return Tensor(storage, dtype or tensor.dtype, tensor.shape, certain=tensor.certain)


def dtype_label(value: Value) -> str:
    """The dtype that an argument names, ``""`` when it is none."""
    if isinstance(value, External) and value.label.startswith("torch."):
        last = value.label[6:]
        return (
            ""
            if "." in last or last in ("device", "strided", "contiguous_format", "preserve_format", "channels_last")
            else value.label
        )
    if isinstance(value, Unknown) and ("dtype" in value.label or value.label.startswith("torch.")):
        return value.label
    return ""


def same_dtype(m: Interpreter, left: str, right: str, node: ast.AST) -> bool:
    """Whether two dtypes are equal: known, decided, or asked once for both runs."""
    if left == right:
        return True
    if is_concrete(left) and is_concrete(right):
        return False
    if is_concrete(left):
        left, right = right, left
    return m.oracle.equal(left, right, m.place(node), constant=is_concrete(right))


def is_concrete(label: str) -> bool:
    return label.startswith("torch.") and "(" not in label


def cast(m: Interpreter, tensor: Tensor, dtype: str, node: ast.AST) -> Tensor:
    """``tensor.to(dtype)``: itself when the dtype is the same already."""
    if not dtype:
        return tensor
    before = len(m.oracle.consulted)
    same = same_dtype(m, tensor.dtype, dtype, node)
    if m.run == 1:
        m.worth_trying(node, m.oracle.consulted[before:], done=not same)  # new memory, or what was given
    if same:
        return tensor
    made = _copy(m, tensor, dtype)
    made.storage.cast = tensor.storage.born == 0 and not (is_concrete(tensor.dtype) and is_concrete(dtype))
    return made


# ---- methods


def method(
    m: Interpreter, tensor: Tensor, name: str, args: list[Value], keywords: dict[str, Value], node: ast.AST
) -> Value:
    """``tensor.name(*args)``."""
    every = [*args, *keywords.values()]
    tensor.certain = tensor.certain or name not in table.AMBIGUOUS
    if name == "to":
        return _to(m, tensor, every, node)
    if name in table.CAST:
        return cast(m, tensor, table.CAST[name], node)
    if name in ("type", "type_as"):
        return (
            cast(m, tensor, next((d for a in every if (d := dtype_label(a))), ""), node) if every else Unknown("type")
        )
    if name == "view" and len(args) == 1 and dtype_label(args[0]):
        dtype = dtype_label(args[0])
        m.oracle.reinterpreted.add((tensor.dtype, dtype))
        return view(m, tensor, "view", args, dtype=dtype)
    if name in ("reshape", "flatten") and tensor.strided:
        made = m.fresh(name, [tensor, *every], dtype=tensor.dtype)
        ranks.of_view(m, tensor.shape, made.shape, name, every)
        return made
    if name in ("detach", "requires_grad_", "alias", "detach_"):
        return tensor if name == "requires_grad_" else tensor.alias()
    if name in table.VIEW:
        return view(m, tensor, name, every)
    if name in table.RESTRIDE:
        return view(m, tensor, name, every, strided=True)
    if name in table.SEVERAL_VIEWS:
        return ListValue(
            [view(m, tensor, name, [*every, Const(i)], strided=True) for i in range(_count(args))], closed=False
        )
    if name == "cuda" and tensor.storage.on_host:
        return _to(m, tensor, [Unknown("device")], node)
    if name in table.KEEP:
        return tensor
    if name in table.KEEP_OR_COPY:
        return _copy(m, tensor) if tensor.strided else tensor
    if name in ("clone", "cpu", "numpy", "pin_memory", "__deepcopy__"):
        return _copy(m, tensor, on_host=name in ("cpu", "numpy", "pin_memory"))
    if name in table.HOST_METHODS:
        return _host(m, tensor, name, every)
    if name in table.SCALAR:
        return m.number(name, tensor)
    if name == "set_":
        return _set(m, tensor, args)
    if name.endswith("_") and not name.endswith("__") and name not in table.NO_WRITE:
        return _in_place(m, tensor, name, args, keywords)
    if name in table.SEVERAL and (args or "dim" in keywords):
        return ListValue([m.fresh(f"{name}{i}", [tensor, *every], dtype=tensor.dtype) for i in range(2)])
    dtype = next((d for a in every if (d := dtype_label(a))), tensor.dtype)
    made = m.fresh(name, [tensor, *every], dtype=dtype, zeroed=name in table.ZEROED)
    if name in table.RESIZE:
        made.shape = resized(m, made.storage.content)
    elif name in table.REORDER:
        made.shape = tensor.shape
    elif not every:
        ranks.of_element(m, tensor, made, name)
    if name.startswith("new_"):
        made.storage.epochs, made.storage.sources = m.epochs(every), m.sources(every)
    made.storage.empty = name.startswith("new_") and has_no_elements(args, keywords)
    return made


def resized(m: Interpreter, content: object) -> int:
    """The shape of a tensor with these contents which has more elements, or fewer, than what these were made from."""
    return m.terms.of("resized", content)


def has_no_elements(args: Sequence[Value], keywords: dict[str, Value]) -> bool:
    """Whether the size that an allocator is given holds a literal 0; the size ``()`` is that of one element."""
    size = keywords.get("size", args[0] if args else None)
    if isinstance(size, ListValue):
        return size.closed and any(_is_zero(item) for item in size.items)
    return isinstance(size, Const) and any(_is_zero(a) for a in args)


def _is_zero(value: Value) -> bool:
    return isinstance(value, Const) and type(value.value) is int and value.value == 0


def _count(args: list[Value]) -> int:
    """How many pieces a split gives, where the sizes are written out."""
    if args and isinstance(args[0], ListValue) and args[0].closed:
        return max(len(args[0].items), 1)
    return (
        args[0].value
        if args and isinstance(args[0], Const) and isinstance(args[0].value, int) and 0 < args[0].value <= 8
        else 4
    )


def _to(m: Interpreter, tensor: Tensor, every: list[Value], node: ast.AST) -> Tensor:
    for argument in every:
        if isinstance(argument, Tensor):
            return cast(m, tensor, argument.dtype, node)
        dtype = dtype_label(argument)
        if dtype:
            return cast(m, tensor, dtype, node)
    if every and label_of(every[0]) in ("'cpu'", "torch.device('cpu')"):
        return _copy(m, tensor, on_host=True)
    if tensor.storage.on_host and every:
        moved = _copy(m, tensor)
        moved.storage.on_host = False
        return moved
    return tensor


def _host(m: Interpreter, tensor: Tensor, name: str, every: list[Value]) -> Value:
    inner = ",".join(label_of(a) for a in every)
    sizes = m.sizes.get(tensor.shape)
    if name == "size" and sizes and every and (known := _dimension(sizes, every[0])) is not None:
        return known
    if name in ("numel", "nelement") and sizes is not None and len(sizes) == 1:
        return sizes[0]
    if name == "size":
        return Unknown(f"shape{tensor.shape}[{inner}]" if every else f"shape{tensor.shape}")
    if name == "stride":
        return Unknown(f"stride{tensor.shape}{'s' if tensor.strided else ''}[{inner}]")
    if name == "data_ptr":
        return Unknown(f"ptr{tensor.storage.number}")
    if name in ("dim", "ndimension"):
        return Unknown(f"shape{tensor.shape}.dim")
    if name in ("numel", "nelement"):
        return Unknown(f"shape{tensor.shape}.numel")
    return Unknown(f"{tensor.home or 'tensor'}.{name}({inner})" if is_stable(inner) else f"tensor.{name}")


def _dimension(sizes: tuple[Value, ...], index: Value) -> Value | None:
    number = index.value if isinstance(index, Const) else None
    return sizes[number] if isinstance(number, int) and -len(sizes) <= number < len(sizes) else None


def _sizes(args: list[Value]) -> tuple[Value, ...]:
    """The sizes that an allocator is given, one after another or as one sequence; empty when they are not all known."""
    given = args[0].items if args and isinstance(args[0], ListValue) and args[0].closed else args
    return tuple(given) if all(isinstance(a, (Const, Unknown)) and is_stable(label_of(a)) for a in given) else ()


def _set(m: Interpreter, tensor: Tensor, args: list[Value]) -> Tensor:
    from rebindlint.execution.promotion import as_tensor

    source = as_tensor(m, args[0]) if args else None
    if source is not None:
        move(m, tensor, source)
    return tensor


def _in_place(m: Interpreter, tensor: Tensor, name: str, args: list[Value], keywords: dict[str, Value]) -> Tensor:
    if name == "copy_" and args:
        source = _as_tensor(m, args[0])
        if source is not None:
            copy_into(m, tensor, source)
        return tensor
    values = [*args, *keywords.values()]
    if name in ("zero_", "fill_", "normal_", "uniform_", "random_") and not m.epochs(values):
        m.write(tensor, m.terms.of(name, *[m.term(v) for v in values]), 0)
        return tensor
    if name == "fill_":
        m.write(tensor, m.terms.of(name, *[m.term(v) for v in values]), m.epochs(values), m.sources(values))
        return tensor
    content = m.terms.of(name, m.term(tensor), *[m.term(v) for v in values])
    epochs = tensor.storage.epochs | m.epochs(values)
    if name.startswith(("scatter", "index", "masked", "put")):
        m.write(tensor, content, m.epochs(values), m.sources(values), whole=False)
    else:
        m.transform(tensor, content, epochs, m.sources(values))
        if tensor.storage.born == 0:
            m.copied(tensor, tensor)
    return tensor


def _as_tensor(m: Interpreter, value: Value) -> Tensor | None:
    from rebindlint.execution.promotion import as_tensor

    return as_tensor(m, value)


def copy_into(m: Interpreter, target: Tensor, source: Tensor) -> None:
    """``target.copy_(source)``; a copy from another view of the same memory reads what it overwrites."""
    if source.storage is target.storage:
        if m.reorders(source.path, target.path):
            m.copied(target, source, overlapping=True)
        return
    sources = source.storage.sources | {source.storage.number}
    if target.storage.number in source.storage.sources and m.term(source) != m.term(target):
        m.transform(target, m.term(source), source.storage.epochs, sources)
    else:
        m.write(target, m.term(source), source.storage.epochs, sources)
    m.copied(target, source)


def move(m: Interpreter, target: Tensor, source: Tensor) -> None:
    """``target`` shows the memory of ``source`` from now on."""
    old, before = target.alias(), m.moved.get(id(target))
    if before is not None:
        m.moved_earlier.setdefault(id(target), []).append(before)
    target.storage, target.path, target.strided = source.storage, source.path, source.strided
    target.dtype, target.shape, target.certain = source.dtype, source.shape, source.certain
    m.moved[id(target)] = m.site(Binding.DATA, source, old)
    m.keep.append(target)


# ---- functions of torch


def _is_of_no_weight(value: Value) -> bool:
    """What a function outside the tree computed, which is nothing that a checkpoint is loaded into."""
    return isinstance(value, Unknown) and value.tensor is None and value.home is None and "(" in value.label


def function(m: Interpreter, name: str, args: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
    """A call of ``torch.…``; ``name`` is dotted and outside the tree."""
    last = name.rpartition(".")[2]
    every = [*args, *keywords.values()]
    if last in ("Parameter", "Buffer", "UninitializedParameter"):
        return parameter(m, args[0] if args else keywords.get("data"), last)
    if name.startswith("torch.ops.") and not last.lstrip("_").startswith(("is_", "has_", "supports_")):
        return _custom(m, name, every, node)
    if name.startswith(table.HOST_FUNCTIONS) or last.lstrip("_").startswith(("is_", "has_", "supports_")):
        if last == "swap_tensors" and len(args) > 1:
            return _swap(m, args)
        return Unknown(f"{name}({','.join(label_of(a) for a in every)})")
    if name == "torch.load":
        return m.fresh(last)  # of a file that is the same after a reload
    if last in ("compile", "vmap", "no_grad") and args:
        return args[0]
    if last == "from_numpy" and args and _is_of_no_weight(args[0]):
        return m.fresh(last, every, dtype=_dtype_of(keywords, args, last, None))
    first = (
        _as_tensor(m, args[0])
        if args and (isinstance(args[0], Tensor) or last not in table.ALLOCATE) and not isinstance(args[0], ListValue)
        else None
    )
    if last in table.JOIN:
        for value in every:
            _join(m, value)
    if last in ("as_tensor", "asarray", "from_numpy", "atleast_1d", "atleast_2d") and first is not None:
        return first
    out = keywords.get("out")
    if out is not None and (target := _as_tensor(m, out)) is not None:
        content, sources = m.terms.of(last, *[m.term(a) for a in args]), m.sources(args)
        if target.storage.number in sources:
            m.transform(target, content, m.epochs(args), sources)
        else:
            m.write(target, content, m.epochs(args), sources)
        return target
    if first is not None and last in (table.VIEW | table.RESTRIDE | table.SEVERAL_VIEWS | {"clone"}):
        return method(m, first, last, args[1:], keywords, node)
    if first is not None and last.endswith("_") and not last.endswith("__"):
        return method(m, first, last, args[1:], keywords, node)
    if last in table.SEVERAL and (len(args) > 1 or "dim" in keywords):
        return ListValue([m.fresh(f"{last}{i}", every) for i in range(2)])
    made = m.fresh(last, every, dtype=_dtype_of(keywords, args, last, first), zeroed=last in table.ZEROED)
    if last in table.RESIZE:
        made.shape = resized(m, made.storage.content)
    elif last in table.REORDER and first is not None:
        made.shape = first.shape
    elif first is not None and len(every) == 1:
        ranks.of_element(m, first, made, last)
    if last.endswith("_like"):  # it takes shape and dtype, never contents
        made.storage.epochs, made.storage.sources = m.epochs(every[1:]), frozenset()
    made.storage.on_host = _names_host(keywords) or (last == "tensor" and _is_number(args) and "device" not in keywords)
    made.storage.scratch = last.startswith("empty")
    if last in table.SIZED:
        made.storage.empty = has_no_elements(args[:1] if last == "full" else args, keywords)
        given = args[:1] if last == "full" else args
        sizes = _sizes(given)
        if sizes:
            made.shape = m.terms.of("size", *[label_of(a) for a in sizes])
        ranks.of_sizes(m, made.shape, given, sizes)
    elif last == "tensor" and args:
        made.storage.empty = isinstance(args[0], ListValue) and args[0].closed and not args[0].items
    return made


def _join(m: Interpreter, value: Value) -> None:
    """The items of a sequence that is put together are tensors, whatever they were known as."""
    if isinstance(value, ListValue):
        for item in value.items:
            if isinstance(item, Unknown) and item.home is not None:
                _as_tensor(m, item)


def _is_number(args: list[Value]) -> bool:
    """``torch.tensor(1.0)`` or ``torch.tensor(int(x))`` without a device: a constant in host memory."""
    if args and isinstance(args[0], Unknown) and args[0].tensor is None:
        return args[0].label.startswith(("int(", "float(", "len("))
    return bool(args) and isinstance(args[0], Const) and isinstance(args[0].value, (int, float))


def _names_host(keywords: dict[str, Value]) -> bool:
    pinned = keywords.get("pin_memory")
    return (isinstance(pinned, Const) and pinned.value is True) or label_of(keywords.get("device", Const(0))) in (
        "'cpu'",
        "torch.device('cpu')",
    )


def _dtype_of(keywords: dict[str, Value], args: list[Value], last: str, first: Tensor | None) -> str:
    given = keywords.get("dtype")
    if given is not None:
        return dtype_label(given) or label_of(given)
    found = next((d for a in args if isinstance(a, External) and (d := dtype_label(a))), "")
    if found:
        return found
    return first.dtype if first is not None and (last.endswith("_like") or last in ("pad", "cat", "stack")) else ""


def parameter(m: Interpreter, data: Value | None, type_name: str = "Parameter") -> Tensor:
    """``Parameter(data)``: another object over the same memory."""
    tensor = _as_tensor(m, data) if data is not None else None
    if tensor is None:
        return Tensor(m.storage(m.terms.of("empty")), "dtype?", 0, is_parameter=True, type_name=type_name)
    tensor.certain = True
    found = tensor.alias()
    found.is_parameter, found.type_name = True, type_name
    return found


def _custom(m: Interpreter, name: str, every: list[Value], node: ast.AST) -> Value:
    """A registered operator: a result that is not used means that it writes into its arguments."""
    tensors = [
        t
        for v in every
        if isinstance(v, (Tensor, Unknown)) and (t := v if isinstance(v, Tensor) else v.tensor) is not None
    ]
    if isinstance(m.frame.statement, ast.Expr) and m.frame.statement.value is node and tensors:
        target = tensors[0]
        m.write(target, m.terms.of(name, *[m.term(v) for v in every]), m.epochs(every), m.sources(every))
        return Const(None)
    made = m.fresh(name, every)
    given = tensors[0] if tensors else None
    made.storage.cast = given is not None and name.endswith("_cast") and not given.path and given.storage.born != m.run
    return made


def _swap(m: Interpreter, args: list[Value]) -> Value:
    left, right = _as_tensor(m, args[0]), _as_tensor(m, args[1])
    if left is not None and right is not None:
        kept = left.alias()
        for target, source in ((left, right), (right, kept)):
            move(m, target, source)
    return Const(None)
