"""Calls that cannot be entered: torch, built-ins and other libraries, and what is assumed of the rest."""

from __future__ import annotations

import ast
import re

from rebindlint.execution import (
    builtin_calls,
    promotion,
    standard_library,
    torch_functions,
    torch_table,
)
from rebindlint.execution.declared import declared
from rebindlint.execution.foreign import (
    WITH_WEIGHT,
    foreign_holder,
    foreign_module,
    foreign_object,
    is_held,
    made_of,
    names_class,
    names_holder,
)
from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.unresolved import Assumption
from rebindlint.execution.values import (
    NOTHING,
    ListValue,
    Tensor,
    Unknown,
    Value,
    is_stable,
    label_of,
)
from rebindlint.index.hooks import POST_LOAD

__all__ = ["call_outside", "parameter_of", "summarise"]

_NO_MODULES = ("Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer")
# by their names functions that put what they are given into another layout, which takes other memory
_REORDERS = re.compile(r"(?:^|_)(?:re|pre)?(?:pack|shuffle|swizzle)(?:_|$)")
_NO_EFFECT = (
    "is_",
    "has_",
    "check",
    "log",
    "assert",
    "supports",
    "can_",
    "use_",
    "should_",
    "get_config",
    "warn",
    "info",
    "debug",
    "print",
    "validate",
)


def call_outside(m: Interpreter, label: str, args: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
    """The value of a call of something outside the tree, by its full name."""
    if label in builtin_calls.BUILTINS:
        return builtin_calls.call(m, label, args, keywords, node)
    if (m.index.declared or m.index.outside.module) and (known := declared(m, label, args, keywords)) is not None:
        return known
    last = label.rpartition(".")[2]
    if label.startswith("torch.nn.") and names_class(last) and last not in _NO_MODULES:
        return foreign_module(m, f"{label}()", WITH_WEIGHT.fullmatch(last) is not None)
    if label.startswith("torch.") or last in ("Parameter", "UninitializedParameter"):
        return torch_functions.function(m, label, args, keywords, node)
    if last.endswith("Parameter") and names_class(last):
        data = promotion.maybe_tensor(args[0] if args else keywords.get("data", NOTHING))
        if data is not None:  # a class of parameters of the engine that a plugin is made for
            return parameter_of(m, data, last, keywords)
    known = standard_library.call(m, label, args, keywords, node)
    if known is None and names_holder(last) and any(map(is_held, (*args, *keywords.values()))):
        _not_entered(m, label, node, Assumption.HOLDS)
        return foreign_holder(m, f"{label}@{m.place(node)}", args, keywords)
    return known or summarise(m, label, args, keywords, node)


def summarise(m: Interpreter, label: str, args: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
    """The result of code that cannot be entered.

    Given tensors it probably returns a newly allocated one, but that is a guess; asked for nothing it writes into what it was
    given. Given none it returns the same thing in both runs.
    """
    every = [made_of(value) for value in (*args, *keywords.values())]
    name = label.rpartition(".")[2]
    reorders = _REORDERS.search(name) is not None
    found = ((v, promotion.operand(m, v) if reorders else promotion.maybe_tensor(v)) for v in every)
    given = [t for v, t in found if t is not None or (isinstance(v, ListValue) and _holds_tensor(v))]
    inner = ",".join(label_of(a) for a in every)
    if not given or name.lstrip("_").startswith(_NO_EFFECT) or name.endswith(("_cls", "_class")):
        _not_entered(m, label, node, Assumption.HARMLESS if given else Assumption.SAME)
        if not given and is_stable(inner) and names_class(name):
            return foreign_object(m, f"{label}({inner})")
        return Unknown(f"{label}({inner})") if is_stable(inner) and not given else Unknown(f"{label}@{m.place(node)}")
    statement = m.frame.statement
    if isinstance(statement, ast.Expr) and statement.value is node:
        target = given[0]
        writes = target is not None and name not in POST_LOAD and not name.startswith("set_")
        _not_entered(m, label, node, Assumption.WRITES if writes else Assumption.HARMLESS)
        if target is not None and writes:
            m.write(target, m.terms.of(label, *[m.term(v) for v in every]), m.epochs(every), m.sources(every))
        return NOTHING
    if name in torch_table.ALLOCATE:
        _not_entered(m, label, node, Assumption.ALLOCATES)
        return m.fresh(name, every)
    _not_entered(m, label, node, Assumption.ALLOCATES if reorders else Assumption.MAYBE_ALLOCATES)
    made = m.fresh(label, every, certain=False)
    made.storage.reordered = reorders
    return made


def _not_entered(m: Interpreter, label: str, node: ast.AST, assumed: Assumption) -> None:
    key = (label, m.frame.info.module, node, assumed)
    m.unresolved[key] = m.unresolved.get(key, 0) + 1


def _holds_tensor(value: ListValue) -> bool:
    return any(promotion.maybe_tensor(item) is not None for item in value.items)


def parameter_of(m: Interpreter, data: Value | None, name: str, keywords: dict[str, Value]) -> Tensor:
    """A parameter of the class ``name`` over ``data``; what else its constructor is given are its attributes."""
    made = torch_functions.parameter(m, data, name)
    made.attributes.update({k: v for k, v in keywords.items() if k not in ("data", "requires_grad")})
    return made
