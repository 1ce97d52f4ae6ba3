"""Functions of torch: what they allocate, view, or write into."""

from __future__ import annotations

import ast

from rebindlint.execution import in_place, promotion, ranks
from rebindlint.execution import torch_table as table
from rebindlint.execution.dtypes import dtype_label
from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.sizes import given_sizes, has_no_elements, resized
from rebindlint.execution.tensors import method
from rebindlint.execution.values import Const, External, ListValue, Tensor, Unknown, Value, label_of

__all__ = ["function", "parameter"]


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
        promotion.as_tensor(m, args[0])
        if args and (isinstance(args[0], Tensor) or last not in table.ALLOCATE) and not isinstance(args[0], ListValue)
        else None
    )
    if last in table.JOIN:
        for value in every:
            _join(m, value)
    if last in ("as_tensor", "asarray", "from_numpy", "atleast_1d", "atleast_2d") and first is not None:
        return first
    out = keywords.get("out")
    if out is not None and (target := promotion.as_tensor(m, out)) is not None:
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
        sizes = given_sizes(given)
        if sizes:
            made.shape = m.terms.of("size", *[label_of(a) for a in sizes])
        ranks.of_sizes(m, made.shape, given, sizes)
    elif last == "tensor" and args:
        made.storage.empty = isinstance(args[0], ListValue) and args[0].closed and not args[0].items
    return made


def _is_of_no_weight(value: Value) -> bool:
    """What a function outside the tree computed, which is nothing that a checkpoint is loaded into."""
    return isinstance(value, Unknown) and value.tensor is None and value.home is None and "(" in value.label


def _join(m: Interpreter, value: Value) -> None:
    """The items of a sequence that is put together are tensors, whatever they were known as."""
    if isinstance(value, ListValue):
        for item in value.items:
            if isinstance(item, Unknown) and item.home is not None:
                promotion.as_tensor(m, item)


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
    tensor = promotion.as_tensor(m, data) if data is not None else None
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
    left, right = promotion.as_tensor(m, args[0]), promotion.as_tensor(m, args[1])
    if left is not None and right is not None:
        kept = left.alias()
        for target, source in ((left, right), (right, kept)):
            in_place.move(m, target, source)
    return Const(None)
