"""Building blocks for fixers: what a statement binds, and the statements that bind it so that its address stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from rebindlint.model import HelperKind, Rebinding, Value
from rebindlint.plugin import FixContext
from rebindlint.wrapping import argument, assigned, call, code, condition, nested

__all__ = [
    "Bound",
    "Statement",
    "agreement",
    "allocate_once",
    "bind_once",
    "bound_by",
    "build_once",
    "call_helper",
    "copy_or_move",
    "is_allocation",
    "is_repeatable",
    "is_tensor",
    "parse",
    "spread",
    "unwrapped",
]

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement


@dataclass(frozen=True, slots=True)
class Bound:
    """``receiver.name = value`` in whatever spelling. ``name`` is an expression's source: ``"w"`` quoted, or computed.
    ``method`` is the one that binds: ``register_buffer``, ``register_parameter``, or none."""

    receiver: str
    name: str
    value: cst.BaseExpression
    method: str = ""

    @classmethod
    def of(cls, target: cst.Attribute, value: cst.BaseExpression) -> Bound:
        return cls(code(target.value), f'"{target.attr.value}"', value)

    @property
    def attribute(self) -> str:
        """The attribute as source; a computed name goes through ``getattr``."""
        plain = self.plain_name
        return f"{self.receiver}.{plain}" if plain else f"getattr({self.receiver}, {self.name})"

    @property
    def plain_name(self) -> str:
        try:
            text = cst.ensure_type(cst.parse_expression(self.name), cst.SimpleString).evaluated_value
        except Exception:
            return ""
        return text if isinstance(text, str) and text.isidentifier() else ""

    def assignment(self, value: str) -> str:
        plain = self.plain_name
        if self.method:
            return f"{self.receiver}.{self.method}({self.name}, {value})"
        return f"{self.receiver}.{plain} = {value}" if plain else f"setattr({self.receiver}, {self.name}, {value})"


def parse(text: str) -> tuple[Statement, ...]:
    """Statements from source text."""
    return tuple(cst.parse_module(text).body)


def _single(statement: Statement) -> cst.BaseSmallStatement | None:
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        return statement.body[0]
    return None


def bound_by(statement: Statement) -> Bound | None:
    """What a statement with exactly one target binds; None for tuples, chains, slots and everything else."""
    small = _single(statement)
    if isinstance(small, cst.Assign) and len(small.targets) == 1:
        return _attribute(small.targets[0].target, small.value)
    if isinstance(small, cst.AnnAssign) and small.value is not None:
        return None  # the annotation would be lost
    if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
        return _call(small.value)
    return None


def _attribute(target: cst.BaseExpression, value: cst.BaseExpression) -> Bound | None:
    if isinstance(target, cst.Attribute) and is_repeatable(target.value):
        return Bound.of(target, value)
    return None


def spread(statement: Statement, context: FixContext) -> tuple[Statement, tuple[Statement, ...]] | None:
    """``a.x, n, b.y = v`` as ``new_x, n, new_y = v``, ``a.x = new_x`` and ``b.y = new_y``; None for everything else."""
    small = _single(statement)
    if not isinstance(small, cst.Assign) or len(small.targets) != 1:
        return None
    target = small.targets[0].target
    if not isinstance(target, cst.Tuple | cst.List):
        return None
    elements = [element for element in target.elements if isinstance(element, cst.Element)]
    names = {code(e.value) for e in elements if isinstance(e.value, cst.Name)}
    if len(elements) < len(target.elements):
        return None
    unpacked: list[cst.Element] = []
    parts: list[Statement] = []
    for element in elements:
        if isinstance(element.value, cst.Name):
            unpacked.append(element)
            continue
        bound = _attribute(element.value, element.value)
        if bound is None or bound.receiver.split(".")[0] in names:
            return None  # not an attribute, or the receiver is another target
        new = context.temporary(f"new_{bound.plain_name.strip('_')}")
        unpacked.append(element.with_changes(value=cst.Name(new)))
        parts += parse(bound.assignment(new) + "\n")
    unpack = statement.with_deep_changes(target, elements=unpacked)
    return (unpack, tuple(parts)) if parts and isinstance(unpack, cst.SimpleStatementLine) else None


def _call(call: cst.Call) -> Bound | None:
    args = [a for a in call.args if a.keyword is None and not a.star]
    if len(args) != len(call.args) or len(args) < 2 or not is_repeatable(args[1 if len(args) == 3 else 0].value):
        return None  # the name would be evaluated twice
    if m.matches(call.func, m.Name("setattr")) and len(args) == 3 and is_repeatable(args[0].value):
        return Bound(code(args[0].value), code(args[1].value), args[2].value)
    registers = m.Attribute(attr=m.Name("register_parameter") | m.Name("register_buffer"))
    if m.matches(call.func, registers) and len(args) == 2:
        func = cst.ensure_type(call.func, cst.Attribute)
        if is_repeatable(func.value):
            return Bound(code(func.value), code(args[0].value), args[1].value, func.attr.value)
    return None


def is_repeatable(node: cst.BaseExpression) -> bool:
    """Evaluating it twice is the same as evaluating it once: names, attributes of them, and text made of those."""
    if isinstance(node, cst.Attribute):
        return is_repeatable(node.value)
    if isinstance(node, cst.FormattedString | cst.ConcatenatedString | cst.BinaryOperation):
        return not m.findall(node, m.Call() | m.Subscript() | m.NamedExpr() | m.Await())
    return isinstance(node, cst.Name | cst.SimpleString)


def unwrapped(value: cst.BaseExpression) -> cst.BaseExpression | None:
    """``v`` of ``Parameter(v, requires_grad=False)``; the value itself when it is no such call, None when unwrapping would lose something."""
    if not m.matches(value, m.Call(func=m.Name("Parameter") | m.Attribute(attr=m.Name("Parameter")))):
        return None if isinstance(value, cst.Call) and code(value.func).endswith("Parameter") else value
    call = cst.ensure_type(value, cst.Call)
    inner: cst.BaseExpression | None = None
    frozen = False
    for position, passed in enumerate(call.args):
        if passed.star:
            return None
        if (passed.keyword is None and position == 0) or m.matches(passed, m.Arg(keyword=m.Name("data"))):
            inner = passed.value
        elif m.matches(passed, m.Arg(keyword=m.Name("requires_grad"), value=m.Name("False"))) or (
            position == 1 and passed.keyword is None and m.matches(passed.value, m.Name("False"))
        ):
            frozen = True
        else:
            return None
    return inner if frozen else None


def call_helper(
    bound: Bound, value: cst.BaseExpression, context: FixContext, *, may_be_none: bool = False
) -> tuple[Statement, ...] | None:
    """The tree's own helper, so that it copies on a reload; None when it has none that can, or would make a parameter of a buffer.

    SGLang's takes no None.
    """
    dialect = context.dialect
    if dialect.kind is None or dialect.kind is HelperKind.REBINDS or bound.method == "register_buffer":
        return None
    if dialect.kind is HelperKind.COPIES_OR_MOVES and may_be_none and not is_tensor(value, context):
        return None
    function = context.local_name(dialect.module, dialect.function)
    arguments = [bound.receiver, bound.name, argument(value)]
    if dialect.kind is HelperKind.PREFER_COPY:
        arguments.append("prefer_copy=True")
    return parse(call(function, arguments, context.width))


def bind_once(
    bound: Bound, fact: Rebinding, context: FixContext, *, rebind: Callable[[str], str] | None = None
) -> tuple[Statement, ...]:
    """Bind in the first run (with ``rebind``, else as it was bound); afterwards copy into what is there, where shape and dtype agree."""
    stem = bound.plain_name.strip("_") or "tensor"
    named = isinstance(bound.value, cst.Name)
    new = code(bound.value) if named else context.temporary(f"new_{stem}")
    old = context.temporary(f"old_{stem}")
    # autograd refuses writes to parameters, and to views of those that require a gradient
    quietly = fact.cell.registered or fact.value_is_parameter or fact.value is Value.VIEW
    target = f"{old}.data" if quietly else old
    tested = ("shape", "stride()", "dtype", "device") if fact.existed_before else ("shape", "dtype")
    may_be_none = not is_tensor(bound.value, context)
    source = f"{new}.clone()" if fact.may_alias else new
    return parse(
        f"{'' if named else assigned(new, bound.value, context.width)}"
        f"{old} = getattr({bound.receiver}, {bound.name}, None)\n"
        f"{agreement(old, new, context.width, may_be_none=may_be_none, tested=tested)}\n"
        f"    {target}.copy_({source})\n"
        "else:\n"
        f"    {(rebind or bound.assignment)(new)}\n"
    )


def copy_or_move(moved: Bound, context: FixContext) -> tuple[Statement, ...]:
    """``p.data = new``, but into the memory that is there when nothing but its contents would change."""
    parameter = moved.receiver
    named = isinstance(moved.value, cst.Name)
    new = code(moved.value) if named else context.temporary(f"new_{parameter.rpartition('.')[2].strip('_')}")
    parts = [f"{parameter}.{what} == {new}.{what}" for what in ("shape", "stride()", "dtype", "device")]
    return parse(
        f"{'' if named else assigned(new, moved.value, context.width)}"
        f"{condition(parts, context.width)}\n"
        f"    {parameter}.data.copy_({new})\n"
        "else:\n"
        f"    {moved.assignment(new)}\n"
    )


def agreement(old: str, new: str, width: int, *, may_be_none: bool, tested: Sequence[str] = ("shape", "dtype")) -> str:
    """The ``if`` line that asks whether ``new`` can be copied into ``old``."""
    present = [f"{old} is not None", f"{new} is not None"] if may_be_none else [f"{old} is not None"]
    return condition([*present, *(f"{old}.{what} == {new}.{what}" for what in tested)], width)


_EMPTY_FACTORIES = ("empty", "empty_like", "new_empty", "empty_strided")
_ON_TENSORS = ("to", "float", "half", "bfloat16", "contiguous", "t", "transpose", "permute", "view", "clone", "reshape")


def _is_surely_tensor(value: cst.BaseExpression) -> bool:
    """Arithmetic, a parameter, a function of torch, or a method that only tensors have."""
    if isinstance(value, cst.BinaryOperation | cst.UnaryOperation):
        return True
    if isinstance(value, cst.Call) and code(value.func).endswith("Parameter"):
        return True
    method = m.Attribute(attr=m.OneOf(*[m.Name(name) for name in _ON_TENSORS]))
    return m.matches(value, m.Call(func=m.Attribute(value=m.Name("torch") | m.Name("F")) | method))


def is_tensor(value: cst.BaseExpression, context: FixContext) -> bool:
    """A tensor on every path, never None."""
    return _is_surely_tensor(value) or context.is_tensor(code(value))


def is_allocation(value: cst.BaseExpression, fact: Rebinding) -> bool:
    """Memory whose contents at first are zeros or nobody's business; any other contents may have been changed since, and are copied."""
    empty = m.Call(func=m.Attribute(attr=m.OneOf(*[m.Name(name) for name in _EMPTY_FACTORIES])))
    made_elsewhere = m.Call(func=m.Attribute(attr=m.OneOf(*[m.Name(name) for name in _ON_TENSORS])))
    if m.matches(value, made_elsewhere):  # on another path it may have been made otherwise, or written since
        return False
    return m.matches(value, empty) or (fact.zeroed and isinstance(value, cst.Call))


def allocate_once(bound: Bound, fact: Rebinding, context: FixContext) -> tuple[Statement, ...]:
    """Memory that does not depend on weights: allocated by the first run, zeroed by the next where the allocator promised zeros."""
    if bound.plain_name and not bound.method:
        assignment = assigned(bound.attribute, bound.value, context.width - len(context.indent)).rstrip()
    else:
        assignment = bound.assignment(code(bound.value))
    text = f"if {_absent(bound, context)}:\n    {nested(assignment)}\n"
    if fact.zeroed:
        text += f"else:\n    {bound.attribute}.zero_()\n"
    return parse(text)


def build_once(bound: Bound, statement: Statement, context: FixContext) -> tuple[Statement, ...]:
    """The statement as it stands, in the first run only."""
    return parse(f"if {_absent(bound, context)}:\n    {nested(code(statement))}\n")


def _absent(bound: Bound, context: FixContext) -> str:
    """The condition that the attribute is not there yet, or None."""
    if bound.plain_name and context.starts_as_none(bound.receiver, bound.plain_name):
        return f"{bound.attribute} is None"
    return f"getattr({bound.receiver}, {bound.name}, None) is None"
