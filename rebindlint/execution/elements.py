"""What the lists and dictionaries of an object hold: the classes of the elements that its constructor fills them with.

Nothing is executed for it. The expressions are followed through local names, comprehensions, factories and annotations.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebindlint.execution.interpreter import Interpreter
from rebindlint.execution.values import ListValue, Obj, Unknown, Value
from rebindlint.index.bindings import own_nodes
from rebindlint.index.classes import ClassInfo, FunctionInfo, InitWrite, class_bound
from rebindlint.index.modules import Module, descend

if TYPE_CHECKING:
    from rebindlint.index.tree import Index

__all__ = ["element_classes", "listed", "new_element"]

_MOST = 3  # classes of which one is chosen
_MAX_STEPS = 5  # names, calls and factories between an attribute and a constructor
_BEFORE_HOOKS = ("__init__", "__post_init__", "create_weights", "setup")
_CONTAINERS = ("ModuleList", "ModuleDict", "Sequential")
_HANDS_ON = (*_CONTAINERS, "list", "tuple", "dict", "OrderedDict", "reversed", "sorted", "deque")
_HOLDING = ("list", "List", "tuple", "Tuple", "dict", "Dict", "Sequence", "Iterable", "Mapping", "set", "deque")
_ADDS = {"append": 0, "add": 0, "insert": 1, "add_module": 1, "register_module": 1}


@dataclass(frozen=True, slots=True)
class Element:
    """``exact``: a constructor call says so; else an annotation or a default, which a class below may take the place of."""

    cls: ClassInfo
    exact: bool


def new_element(m: Interpreter, owner: Obj, name: str, label: str, node: ast.AST) -> Obj | None:
    """One element of ``owner.name``, None where nothing says of which class."""
    found = element_classes(m, owner, name)
    if not found:
        return None
    chosen = m.ask(f"class of {label}", node, len(found), default=0) if len(found) > 1 else 0
    cls = found[chosen].cls
    return Obj(label, cls, is_module=m.index.is_module(cls), exact=found[chosen].exact)


def listed(m: Interpreter, container: Value, of: str = "") -> ListValue | None:
    """The elements of a container whose elements' class is known, one for all; ``of``: the method of a dictionary that gives them."""
    from rebindlint.execution.promotion import element_of

    home = container.home if isinstance(container, (Obj, Unknown)) else None
    if home is None or (isinstance(container, Obj) and container.cls is not None):
        return None
    if not element_classes(m, *home):
        return None
    key: Value = Unknown(f"{home[0].label}.{home[1]}.key")
    if of == "keys":
        return ListValue([key], closed=False)
    value = element_of(m, Unknown(f"{home[0].label}.{home[1]}", home), "*")
    return ListValue([ListValue([key, value]) if of == "items" else value], closed=False)


def element_classes(m: Interpreter, owner: Obj, name: str) -> tuple[Element, ...]:
    """The classes that elements of the attribute may be of, in the order of the source."""
    if owner.cls is None:
        return ()
    key = ("elements", id(owner.cls), name)
    known: tuple[Element, ...] | None = m.index.pure.get(key)
    if known is None:
        m.index.pure[key] = ()  # an attribute that is filled from itself ends here
        known = m.index.pure[key] = _of_attribute(m, owner.cls, name)
    return known


def _of_attribute(m: Interpreter, cls: ClassInfo, name: str) -> tuple[Element, ...]:
    search = _Search(m, cls)
    found: dict[int, Element] = {}
    for base in m.index.mro(cls):
        for write in base.writes.get(name, ()):
            if write.function.name in _BEFORE_HOOKS:
                for element in search.written(write, name):
                    found.setdefault(id(element.cls), element)
        if name in base.annotations:
            for element in search.held(base.annotations[name], base.module):
                found.setdefault(id(element.cls), element)
        if found:
            break  # what a class says of its attribute goes before what its bases say
    return tuple(found.values())[:_MOST]


class _Search:
    """Follows expressions in the methods of one class."""

    def __init__(self, m: Interpreter, cls: ClassInfo) -> None:
        self._index, self._cls = m.index, cls

    def written(self, write: InitWrite, name: str) -> Iterator[Element]:
        """Elements of what a constructor assigns to ``self.name``, and of what it adds to that later."""
        function = write.function
        if write.annotation is not None:
            yield from self.held(write.annotation, function.module)
        value = write.value if write.value is not None else write.unpacked
        if value is not None:
            yield from self.elements(value, function, _MAX_STEPS)
        yield from self._added(function, name, _MAX_STEPS, of_self=True)

    def held(self, annotation: ast.expr, module: Module) -> Iterator[Element]:
        """``X`` of ``list[X]`` or ``dict[str, X]``."""
        if not isinstance(annotation, ast.Subscript):
            return
        head = annotation.value
        if (head.attr if isinstance(head, ast.Attribute) else getattr(head, "id", "")) not in _HOLDING:
            return
        inner = annotation.slice
        if isinstance(inner, ast.Tuple):
            if not inner.elts:
                return
            last = inner.elts[-1]
            inner = inner.elts[0] if isinstance(last, ast.Constant) and last.value is ... else last
        yield from self._class(module, inner, exact=False)

    def elements(self, node: ast.expr, function: FunctionInfo, steps: int) -> Iterator[Element]:
        """What an expression holds that gives a container."""
        if steps <= 0:
            return
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            for item in node.elts:
                if isinstance(item, ast.Starred):
                    yield from self.elements(item.value, function, steps - 1)
                else:
                    yield from self.instance(item, function, steps - 1)
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            yield from self.instance(node.elt, function, steps - 1)
        elif isinstance(node, ast.DictComp):
            yield from self.instance(node.value, function, steps - 1)
        elif isinstance(node, ast.Dict):
            for value in node.values:
                yield from self.instance(value, function, steps - 1)
        elif isinstance(node, ast.IfExp):
            yield from self.elements(node.body, function, steps - 1)
            yield from self.elements(node.orelse, function, steps - 1)
        elif isinstance(node, ast.BinOp):
            yield from self.elements(node.left, function, steps - 1)
            yield from self.elements(node.right, function, steps - 1)
        elif isinstance(node, ast.Name):
            yield from self._of_name(node.id, function, steps)
        elif isinstance(node, ast.Call):
            yield from self._of_call(node, function, steps)

    def _of_name(self, name: str, function: FunctionInfo, steps: int) -> Iterator[Element]:
        for value in _assigned(function, name):
            yield from self.elements(value, function, steps - 1)
        yield from self._added(function, name, steps - 1)
        annotation = _annotation(function, name)
        if annotation is not None:
            yield from self.held(annotation, function.module)

    def _of_call(self, node: ast.Call, function: FunctionInfo, steps: int) -> Iterator[Element]:
        """A container made from another, the result of a function of the tree, or of one that is given a factory."""
        found = self._index.resolve_expression(function.module, node.func)
        dotted = str(found) if isinstance(found, str) else node.func.id if isinstance(node.func, ast.Name) else ""
        if dotted.rpartition(".")[2] in _HANDS_ON and not isinstance(found, FunctionInfo):
            for argument in node.args:
                inner = argument.value if isinstance(argument, ast.Starred) else argument
                yield from self.elements(inner, function, steps - 1)
                if not isinstance(argument, ast.Starred):  # nn.Sequential(A(), B())
                    yield from self.instance(argument, function, steps - 1)
            return
        called = found if isinstance(found, FunctionInfo) else self._own_method(node.func, function)
        if called is not None and not isinstance(called.node, ast.Lambda):
            held = list(self.held(called.node.returns, called.module)) if called.node.returns is not None else []
            yield from held
            if not held:
                for value in _returned(called):
                    yield from self.elements(value, called, steps - 1)
        for argument in [*node.args, *(k.value for k in node.keywords)]:
            if isinstance(argument, ast.Lambda):
                yield from self.instance(argument.body, function, steps - 1)
            elif isinstance(argument, ast.Name):
                for inner_function in _defined(self._index, function, argument.id):
                    for value in _returned(inner_function):
                        yield from self.instance(value, inner_function, steps - 1)

    def _added(self, function: FunctionInfo, name: str, steps: int, *, of_self: bool = False) -> Iterator[Element]:
        """``name.append(x)``, ``name[key] = x``; of an attribute of the function's object, or of a local name."""

        def is_it(node: ast.expr) -> bool:
            if of_self:
                inner = node.value if isinstance(node, ast.Attribute) and node.attr == name else None
                return isinstance(inner, ast.Name) and inner.id == function.self_name
            return isinstance(node, ast.Name) and node.id == name

        for node in descend(function.node):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_it(node.func.value):
                place = _ADDS.get(node.func.attr)
                if place is not None and len(node.args) > place:
                    yield from self.instance(node.args[place], function, steps)
                elif node.func.attr == "extend" and node.args:
                    yield from self.elements(node.args[0], function, steps)
            elif isinstance(node, ast.Assign) and any(
                isinstance(target, ast.Subscript) and is_it(target.value) for target in node.targets
            ):
                yield from self.instance(node.value, function, steps)

    def instance(self, node: ast.expr, function: FunctionInfo, steps: int) -> Iterator[Element]:
        """The classes that an expression gives an object of."""
        if steps <= 0:
            return
        if isinstance(node, ast.IfExp):
            yield from self.instance(node.body, function, steps - 1)
            yield from self.instance(node.orelse, function, steps - 1)
        elif isinstance(node, ast.Name):
            for value in _assigned(function, node.id):
                yield from self.instance(value, function, steps - 1)
        elif isinstance(node, ast.Call):
            yield from self._constructed(node, function, steps)

    def _constructed(self, node: ast.Call, function: FunctionInfo, steps: int) -> Iterator[Element]:
        found = self._index.resolve_expression(function.module, node.func)
        if isinstance(node.func, ast.Name) and (
            node.func.id in function.positional or any(k == node.func.id for k, _ in function.keyword_only)
        ):
            yield from self._given_class(node.func.id, function)
            return
        if isinstance(found, ClassInfo):
            yield from self._class(function.module, node.func, exact=True)
            return
        called = found if isinstance(found, FunctionInfo) else self._own_method(node.func, function)
        if called is not None and not isinstance(called.node, ast.Lambda):
            returned = [e for value in _returned(called) for e in self.instance(value, called, steps - 1)]
            if not returned and called.node.returns is not None:
                returned = list(self._class(called.module, called.node.returns, exact=False))
            yield from returned
        elif isinstance(node.func, ast.Name):
            for value in _assigned(function, node.func.id):  # a local name for a class
                for option in (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,):
                    yield from self._class(function.module, option, exact=True)
            for inner in _defined(self._index, function, node.func.id):
                for value in _returned(inner):
                    yield from self.instance(value, inner, steps - 1)

    def _given_class(self, name: str, function: FunctionInfo) -> Iterator[Element]:
        """A class that is an argument: its default stands for what callers give, else its bound does."""
        default = function.default_of(name)
        found = list(self._class(function.module, default, exact=False)) if default is not None else []
        annotation = _annotation(function, name)
        bound = class_bound(annotation) if annotation is not None and not found else None
        yield from found
        if bound is not None:
            yield from self._class(function.module, bound, exact=False)

    def _class(self, module: Module, node: ast.expr, *, exact: bool) -> Iterator[Element]:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except SyntaxError:
                return
        found = self._index.resolve_expression(module, node)
        if not isinstance(found, ClassInfo):
            return
        index = self._index
        if index.is_parameter_class(found) or index.is_enumeration(found):
            return
        if any(name.rpartition(".")[2] in _CONTAINERS for name in index.externals(found)):
            return  # its own elements are what a loop is about
        yield Element(found, exact)

    def _own_method(self, node: ast.expr, function: FunctionInfo) -> FunctionInfo | None:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and function.self_name == node.value.id:
            return self._index.method(self._cls, node.attr)
        return None


def _assigned(function: FunctionInfo, name: str) -> list[ast.expr]:
    """What is assigned to a local name, nested functions left out."""
    found: list[ast.expr] = []
    for node in own_nodes(function.node):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            found.append(node.value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            found += [node.value] if node.value is not None else []
    return [value for value in found if not (isinstance(value, ast.Name) and value.id == name)]


def _annotation(function: FunctionInfo, name: str) -> ast.expr | None:
    spec = function.node.args
    return next((a.annotation for a in [*spec.posonlyargs, *spec.args, *spec.kwonlyargs] if a.arg == name), None)


def _returned(function: FunctionInfo) -> list[ast.expr]:
    if isinstance(function.node, ast.Lambda):
        return [function.node.body]
    return [n.value for n in own_nodes(function.node) if isinstance(n, ast.Return) and n.value is not None]


def _defined(index: Index, function: FunctionInfo, name: str) -> Iterator[FunctionInfo]:
    """A function defined inside another under a name."""
    for node in own_nodes(function.node):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            yield index.function_info(function.module, node)
