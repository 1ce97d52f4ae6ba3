"""The real names of attributes that an object is told when it is made: what those that make it hand to its constructor.

A kernel that is made as ``kernel_type(config, param_names=["weight", "scale"])`` in a function that says that it returns such
kernels finds its layer's weights under these names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from rebindlint.execution.constructed import Constructed, literal_argument
from rebindlint.execution.constructor_writes import last_writes
from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.values import Obj, Value
from rebindlint.index.classes import ClassInfo, FunctionInfo, unquoted
from rebindlint.index.modules import Module, descend, text_of

__all__ = ["spelled"]

_COMPUTED = re.compile(r"\{(\w+(?:\.\w+)*)\.(\w+)(?:\[(\d+)\])?\}")
_MAX_FILES = 12  # more than these mention a parameter of so common a name: it says nothing about one class
_Made = tuple[ast.Call, FunctionInfo]


def spelled(m: Interpreter, roots: Sequence[tuple[str, Value]], name: str) -> str:
    """The real name of an attribute whose name is computed, ``{self.names[0]}``; as it is where the tree does not tell it."""
    known = m.spelled.get(name)
    if known is None:
        match = _COMPUTED.fullmatch(name)
        obj = _object(roots, match[1]) if match is not None else None
        node = _given(m, obj, match[2]) if match is not None and obj is not None else None
        names = _names_in(node) if node is not None else []
        index = int(match[3] or 0) if match is not None else 0
        one = match is not None and (match[3] is None) == isinstance(node, ast.Constant)
        known = m.spelled[name] = names[index] if one and index < len(names) else name
    return known


def _object(roots: Sequence[tuple[str, Value]], path: str) -> Obj | None:
    first, *rest = path.split(".")
    value: Value | None = next((value for name, value in roots if name == first), None)
    for name in rest:
        value = value.attributes.get(name) if isinstance(value, Obj) else None
    return value if isinstance(value, Obj) else None


def _given(m: Interpreter, obj: Obj, attribute: str) -> ast.expr | None:
    """The literal that the constructor keeps under the attribute wherever the tree makes such an object, None where these differ."""
    cls = obj.cls
    if cls is None or not obj.exact:
        return None
    key = ("given names", id(cls), attribute)
    if key not in m.index.pure:
        writes = last_writes(m, cls, attribute)
        value = writes[0].value if len(writes) == 1 else None
        m.index.pure[key] = _handed(m, cls, writes[0].function, value.id) if isinstance(value, ast.Name) else None
    found: ast.expr | None = m.index.pure[key]
    return found


def _handed(m: Interpreter, cls: ClassInfo, function: FunctionInfo, name: str) -> ast.expr | None:
    """What every call that makes such an object hands to this parameter of a constructor of it."""
    given = []
    for call, maker in _makers(m, cls, name) if function.name == "__init__" else ():
        made = Constructed("made", cls, call, maker, Obj("maker", maker.owner), is_module=False)
        given.append(literal_argument(m, made, function, name))
    texts = {text_of(node) if node is not None else "" for node in given}
    return given[0] if len(texts) == 1 and _holds_names(given[0]) else None


def _holds_names(node: ast.expr | None) -> bool:
    names = _names_in(node) if node is not None else []
    return bool(names) and all(name.isidentifier() for name in names)


def _names_in(node: ast.expr) -> list[str]:
    items = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
    return [str(item.value) for item in items if isinstance(item, ast.Constant)]


def _makers(m: Interpreter, cls: ClassInfo, name: str) -> Iterator[_Made]:
    """The calls that may make an object of the class, with the functions that they stand in."""
    for call, function in _calls(m, f"{name}=") or _calls(m, f"{cls.name}("):
        callee = m.index.resolve_expression(function.module, call.func)
        if isinstance(callee, ClassInfo):
            if callee is cls:
                yield call, function
            continue
        returned = _returned(m, function)
        if not returned or any(m.index.is_subclass(cls, r) or m.index.is_subclass(r, cls) for r in returned):
            yield call, function


def _calls(m: Interpreter, text: str) -> list[_Made]:
    """The calls with a keyword, ``name=``, or of a class, ``Name(``; not those that pass on to a base what they were given."""
    key = ("calls", text)
    known: list[_Made] | None = m.index.pure.get(key)
    if known is None:
        known = m.index.pure[key] = []
        name = text[:-1].encode()
        pattern = re.compile(rb"\b" + name + (rb"[ \t]*=(?!=)" if text.endswith("=") else rb"\("))
        files = [f for f, raw in m.index.bytes.items() if name in raw and pattern.search(raw)]
        for shown in files if len(files) <= _MAX_FILES else ():
            module = m.index.module(m.index.by_shown[shown].module)
            if module is not None:
                known.extend(_calls_in(m, module, text))
    return known


def _calls_in(m: Interpreter, module: Module, text: str) -> Iterator[_Made]:
    functions = [method for cls in m.index.classes_of(module) for method in cls.methods.values()]
    for node in module.tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            functions.append(m.index.function_info(module, node))
    for function in functions:
        for call in descend(function.node):
            if isinstance(call, ast.Call) and _is_meant(call, text) and call not in function.super_calls:
                yield call, function


def _is_meant(call: ast.Call, text: str) -> bool:
    if text.endswith("("):
        return text_of(call.func).rpartition(".")[2] == text[:-1]
    return any(keyword.arg == text[:-1] for keyword in call.keywords)


def _returned(m: Interpreter, function: FunctionInfo) -> list[ClassInfo]:
    """The classes of the tree that the function is annotated to return."""
    if isinstance(function.node, ast.Lambda) or function.node.returns is None:
        return []
    names = (n for n in ast.walk(unquoted(function.node.returns)) if isinstance(n, (ast.Name, ast.Attribute)))
    found = (m.index.resolve_expression(function.module, node) for node in names)
    return [info for info in found if isinstance(info, ClassInfo)]
