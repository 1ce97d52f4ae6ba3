"""Classes of which only a bound is known: ``experts_cls: type[Experts]`` is one of the classes below ``Experts``.

Which one, configuration decides. For hazards only those matter whose constructor makes tensors of its own, so some of
these and the bound itself stand for all.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import TypeGuard

from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.naming import names_weight
from rebindlint.execution.torch_table import ALLOCATE
from rebindlint.execution.values import ClassValue, Unknown, Value
from rebindlint.index.classes import ClassInfo, FunctionInfo
from rebindlint.index.hooks import POST_LOAD
from rebindlint.index.modules import Module, descend
from rebindlint.index.tree import Index

__all__ = ["bounded_class", "chosen_class", "may_be_made"]

_MOST = 3
_MAX_CALLS = 2  # functions of the tree that a constructor may get its tensors through
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+\d*|[A-Z]+\d*|\d+")


def bounded_class(m: Interpreter, value: Unknown, bound: ast.expr, module: Module, node: ast.AST) -> Value:
    """One of the classes that ``value`` may be, the same in both runs; the value itself where none makes tensors."""
    info = m.index.resolve_expression(module, bound)
    if not isinstance(info, ClassInfo):
        return value
    m.bounds[value.label] = info
    return chosen_class(m, value, info, module, node)


def chosen_class(m: Interpreter, value: Unknown, info: ClassInfo, module: Module, node: ast.AST) -> Value:
    """The same where the bound is known already."""
    found = _candidates(m, info, module)
    m.choosers.setdefault(info.qualified, set()).add(module.name)
    settled = m.oracle.constant_of(value.label)
    for cls in found:
        m.bounded[id(cls.node)] = info
    if settled is not None or not found:
        return next((ClassValue(cls) for cls in found if cls.name == settled), value)
    chosen = m.ask(f"class of {value.label}", node, len(found) + 1, default=0)
    if chosen == len(found):
        return value
    m.oracle.settle(value.label, found[chosen].name)
    return ClassValue(found[chosen])


def _candidates(m: Interpreter, info: ClassInfo, module: Module) -> tuple[ClassInfo, ...]:
    """Classes below the bound that make tensors, those named like the module that asks first, plain ones before special ones.

    Those come last whose own hook makes them, not their constructor. Where there is none below, it is the bound itself. A
    module that builds objects of a bounded class often chooses the class as well: where it names some, others are out.
    """
    key = ("below", id(info.node), module.name)
    known = m.index.pure.get(key)
    if known is None:
        words = _words(module.name.rpartition(".")[2])
        below = _below(m.index, info, module)
        known = m.index.pure[key] = _first(m, below or [info], words)
    assert isinstance(known, tuple)
    return known


def _below(index: Index, info: ClassInfo, module: Module) -> list[ClassInfo]:
    below = [cls for cls in index.subclasses(info) if cls is not info]
    text = module.text
    return [cls for cls in below if cls.name in text and re.search(rf"\b{cls.name}\b", text)] or below


def may_be_made(index: Index, cls: ClassInfo, bound: str, module: str) -> bool:
    """Whether what a module makes of a class below a bound may be an object of ``cls``."""
    info = next((base for base in index.mro(cls) if base.qualified == bound), None)
    maker = index.module(module)
    return info is not None and maker is not None and cls in _below(index, info, maker)


def _first(m: Interpreter, classes: list[ClassInfo], words: set[str]) -> tuple[ClassInfo, ...]:
    classes = sorted(classes, key=lambda cls: (-len(words & _words(cls.name)), len(_words(cls.name)), cls.qualified))
    making = [cls for cls in classes if _makes_tensors(m, cls)][:_MOST]
    if len(making) < _MOST:
        making += [cls for cls in classes if cls not in making and _makes_tensors_later(m, cls)]
    return tuple(making[:_MOST])


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)}


def _makes_tensors(m: Interpreter, cls: ClassInfo) -> bool:
    constructors = [base.methods["__init__"] for base in m.index.mro(cls) if "__init__" in base.methods]
    return not _is_abstract(m, cls) and any(_allocates(m, constructor) for constructor in constructors)


def _makes_tensors_later(m: Interpreter, cls: ClassInfo) -> bool:
    """Whether not the constructor does, but the hook that is called on the new object."""
    hooks = [hook for name in sorted(POST_LOAD) if (hook := m.index.method(cls, name)) is not None]
    return not _is_abstract(m, cls) and any(_allocates(m, hook) for hook in hooks)


def _is_abstract(m: Interpreter, cls: ClassInfo) -> bool:
    return any(
        method.is_abstract and m.index.method(cls, name) is method
        for base in m.index.mro(cls)
        for name, method in base.methods.items()
    )


def _allocates(m: Interpreter, constructor: FunctionInfo) -> bool:
    """Whether the constructor binds an attribute in a statement that makes a tensor."""
    inner = {
        n.name: n for n in descend(constructor.node) if isinstance(n, ast.FunctionDef) and n is not constructor.node
    }
    for statement in descend(constructor.node):
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(isinstance(target, ast.Attribute) for target in targets) and any(
                _makes_tensor(m, node, constructor.module, inner, _MAX_CALLS) for node in descend(statement.value)
            ):
                return True
    return False


def _makes_tensor(
    m: Interpreter, node: ast.AST, module: Module, inner: Mapping[str, ast.FunctionDef], depth: int
) -> bool:
    """An allocator of torch, a function that calls one, or arithmetic on what is called as weights are."""
    if isinstance(node, ast.BinOp):
        named = [n.attr if isinstance(n, ast.Attribute) else n.id for n in (node.left, node.right) if _is_named(n)]
        return any(names_weight(name) for name in named)
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr in ALLOCATE:
        return True
    if isinstance(function, ast.Name) and function.id in inner:
        return any(_makes_tensor(m, n, module, {}, 0) for n in descend(inner[function.id]) if isinstance(n, ast.Call))
    found = m.index.resolve_expression(module, function)
    if isinstance(found, str):
        return str(found).startswith("torch.") and str(found).rpartition(".")[2] in ALLOCATE
    if not isinstance(found, FunctionInfo) or depth <= 0:
        return False
    calls = [n for n in descend(found.node) if isinstance(n, ast.Call)]
    return any(_makes_tensor(m, call, found.module, {}, depth - 1) for call in calls)


def _is_named(node: ast.expr) -> TypeGuard[ast.Attribute | ast.Name]:
    return isinstance(node, (ast.Attribute, ast.Name))
