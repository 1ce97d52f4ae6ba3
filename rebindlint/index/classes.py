"""Classes of the linted tree: members, hierarchy, what each method writes to ``self``."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from rebindlint.index.bindings import binds, callee_name, is_some, own_nodes, shows
from rebindlint.index.modules import FunctionNode, Module, descend

__all__ = ["ClassInfo", "FunctionInfo", "InitWrite", "class_bound", "decorator_names", "unquoted"]


def decorator_names(node: FunctionNode | ast.ClassDef) -> tuple[str, ...]:
    """The decorators' last names: ``functools.cache`` and ``cache(...)`` both give ``cache``."""
    found = []
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        found.append(
            target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""
        )
    return tuple(found)


def class_bound(annotation: ast.expr) -> ast.expr | None:
    """``X`` of ``type[X]``, also in a union with None, and where either stands in quotes."""
    annotation = unquoted(annotation)
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        return class_bound(annotation.left) or class_bound(annotation.right)
    if not isinstance(annotation, ast.Subscript) or not isinstance(annotation.value, ast.Name):
        return None
    if annotation.value.id == "Optional":
        return class_bound(annotation.slice)
    return unquoted(annotation.slice) if annotation.value.id in ("type", "Type") else None


def unquoted(annotation: ast.expr) -> ast.expr:
    """The annotation that stands in quotes, any other as it is."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            return ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return annotation
    return annotation


@dataclass(eq=False)
class FunctionInfo:
    """A function of the tree; ``owner`` is the class in whose body it stands."""

    node: FunctionNode | ast.Lambda
    module: Module
    owner: ClassInfo | None = None

    @cached_property
    def name(self) -> str:
        return "<lambda>" if isinstance(self.node, ast.Lambda) else self.node.name

    @cached_property
    def qualified(self) -> str:
        return f"{self.owner.name}.{self.name}" if self.owner else self.name

    @cached_property
    def decorators(self) -> tuple[str, ...]:
        return () if isinstance(self.node, ast.Lambda) else decorator_names(self.node)

    @cached_property
    def is_static(self) -> bool:
        return "staticmethod" in self.decorators

    @cached_property
    def is_classmethod(self) -> bool:
        return "classmethod" in self.decorators or self.name in ("__init_subclass__", "__class_getitem__")

    @cached_property
    def is_property(self) -> bool:
        return any(name in ("property", "cached_property") for name in self.decorators)

    @cached_property
    def is_cached(self) -> bool:
        """The function remembers its result, so that a second call gives the same object."""
        return any(name in ("cache", "lru_cache", "cached_property") for name in self.decorators)

    @cached_property
    def is_generator(self) -> bool:
        return not isinstance(self.node, ast.Lambda) and any(
            isinstance(node, (ast.Yield, ast.YieldFrom)) for node in own_nodes(self.node)
        )

    @cached_property
    def binds(self) -> bool:
        """Whether its branches matter to cells: the body binds an attribute or slot, calls something that by its name
        does, or may return what it was given."""
        return bool(self.handed_through) or self.gives_either or any(binds(node) for node in self._nodes)

    @cached_property
    def gives_either(self) -> bool:
        """Whether it returns memory that it was given, perhaps under another shape, or something else: that is up to its branches."""
        names = {a.arg for a in [*self.node.args.posonlyargs, *self.node.args.args, *self.node.args.kwonlyargs]}
        shown = {
            shows(node.value, names) for node in self._nodes if isinstance(node, ast.Return) and is_some(node.value)
        }
        return len(shown) > 1

    @cached_property
    def handed_through(self) -> frozenset[str]:
        """Parameters that the function may return: whether it returns them or something new in their place is up to its branches."""
        names = {a.arg for a in [*self.node.args.posonlyargs, *self.node.args.args, *self.node.args.kwonlyargs]}
        return frozenset(
            node.value.id
            for node in self._nodes
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Name) and node.value.id in names
        )

    @cached_property
    def returns(self) -> bool:
        """Whether it may give its caller something."""
        return any(isinstance(node, ast.Return) and is_some(node.value) for node in self._nodes)

    @cached_property
    def positional(self) -> tuple[str, ...]:
        """Names of the parameters that arguments by position go to."""
        return tuple(a.arg for a in [*self.node.args.posonlyargs, *self.node.args.args])

    @cached_property
    def defaults(self) -> dict[str, ast.expr]:
        """Parameters that arguments by position go to, with the default where there is one."""
        given = self.node.args.defaults
        return dict(zip(self.positional[len(self.positional) - len(given) :], given, strict=True))

    @cached_property
    def keyword_only(self) -> tuple[tuple[str, ast.expr | None], ...]:
        """Parameters that only keywords go to, with their defaults."""
        spec = self.node.args
        return tuple((a.arg, default) for a, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True))

    def default_of(self, name: str) -> ast.expr | None:
        """The default of a parameter, if it has one."""
        return self.defaults.get(name) or next((default for key, default in self.keyword_only if key == name), None)

    @cached_property
    def assignments(self) -> tuple[ast.Assign, ...]:
        """Every plain assignment in it."""
        return tuple(node for node in descend(self.node) if isinstance(node, ast.Assign))

    @cached_property
    def super_calls(self) -> tuple[ast.Call, ...]:
        """``super().__init__(…)``."""
        return tuple(
            node
            for node in descend(self.node)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "__init__"
            and isinstance(node.func.value, ast.Call)
            and isinstance(node.func.value.func, ast.Name)
            and node.func.value.func.id == "super"
        )

    @cached_property
    def class_parameters(self) -> dict[str, ast.expr]:
        """Parameters annotated ``type[X]``, with ``X``."""
        every = [*self.node.args.posonlyargs, *self.node.args.args, *self.node.args.kwonlyargs]
        bounds = {a.arg: class_bound(a.annotation) for a in every if a.annotation is not None}
        return {name: bound for name, bound in bounds.items() if bound is not None}

    @cached_property
    def is_abstract(self) -> bool:
        """Declared so, or nothing but a ``raise``: a subclass, or a library that was not imported, does the work."""
        if isinstance(self.node, ast.Lambda):
            return False
        body = [n for n in self.node.body if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))]
        raises = len(body) == 1 and isinstance(body[0], ast.Raise)
        return raises or "abstractmethod" in self.decorators or "overload" in self.decorators

    @cached_property
    def self_name(self) -> str:
        arguments = self.node.args.posonlyargs + self.node.args.args
        return arguments[0].arg if self.owner and arguments and not self.is_static else ""

    @cached_property
    def own_calls(self) -> tuple[tuple[bool, str], ...]:
        """Methods that it calls on its own object, and, with True, those on ``super()``."""
        found: dict[tuple[bool, str], None] = {}
        for node in self._nodes if self.owner is not None else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                target = node.func.value
                if isinstance(target, ast.Name) and target.id == self.self_name:
                    found[(False, node.func.attr)] = None
                elif isinstance(target, ast.Call) and callee_name(target) == "super":
                    found[(True, node.func.attr)] = None
        return tuple(found)

    @cached_property
    def globals(self) -> frozenset[str]:
        return frozenset(n for node in self._nodes if isinstance(node, ast.Global) for n in node.names)

    @cached_property
    def nonlocals(self) -> frozenset[str]:
        return frozenset(n for node in self._nodes if isinstance(node, ast.Nonlocal) for n in node.names)

    @cached_property
    def mentioned(self) -> frozenset[str]:
        """Names of variables in it and in the functions inside of it."""
        return frozenset(node.id for node in descend(self.node) if isinstance(node, ast.Name))

    @cached_property
    def _nodes(self) -> tuple[ast.AST, ...]:
        """The nodes that the properties above look for, found in one walk."""
        return tuple(node for node in descend(self.node) if type(node) in _OF_INTEREST)


_OF_INTEREST = frozenset({ast.Attribute, ast.Subscript, ast.Call, ast.Return, ast.Global, ast.Nonlocal})


Guard = tuple[ast.expr, bool]  # a condition, and whether it holds there


@dataclass(frozen=True, slots=True, eq=False)
class InitWrite:
    """``self.name = value`` in a method; ``conditional`` when it stands under a branch."""

    value: ast.expr | None
    annotation: ast.expr | None
    conditional: bool
    function: FunctionInfo
    persistent: bool = True  # False: a buffer that no checkpoint has
    unpacked: ast.expr | None = None  # what ``self.name, other = …`` takes apart, then ``value`` is not known
    guards: tuple[Guard, ...] = ()  # the conditions that it stands under
    only_guarded: bool = True  # no loop or handler is around it


@dataclass(eq=False)
class ClassInfo:
    node: ast.ClassDef
    module: Module
    methods: dict[str, FunctionInfo] = field(default_factory=dict)
    setters: dict[str, FunctionInfo] = field(default_factory=dict)
    attributes: dict[str, ast.expr] = field(default_factory=dict)
    annotations: dict[str, ast.expr] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.node.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                info = FunctionInfo(node, self.module, self)
                kinds = [
                    d.attr
                    for d in node.decorator_list
                    if isinstance(d, ast.Attribute) and d.attr in ("setter", "deleter")
                ]
                if kinds:
                    if "setter" in kinds:
                        self.setters[node.name] = info
                elif "overload" not in info.decorators:
                    self.methods[node.name] = info
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.attributes[target.id] = node.value
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                self.annotations[node.target.id] = node.annotation
                if node.value is not None:
                    self.attributes[node.target.id] = node.value

    @property
    def name(self) -> str:
        return self.node.name

    @cached_property
    def qualified(self) -> str:
        return f"{self.module.name}.{self.node.name}"

    @cached_property
    def writes(self) -> dict[str, list[InitWrite]]:
        """``self.x = …`` of every method of this class body, in source order."""
        found: dict[str, list[InitWrite]] = {}
        for info in self.methods.values():
            if info.self_name and isinstance(info.node, ast.FunctionDef):
                _collect(info.node.body, _Around(info), found)
        return found

    @cached_property
    def aliases(self) -> dict[str, tuple[str, ...]]:
        """Attributes that ``self.b = self.a`` in a constructor makes other names of ``a``."""
        found: dict[str, tuple[str, ...]] = {}
        for name, writes in self.writes.items():
            for write in writes:
                value = write.value
                if (
                    isinstance(value, ast.Attribute)
                    and isinstance(value.value, ast.Name)
                    and value.value.id == write.function.self_name
                    and write.function.name == "__init__"
                ):
                    found[value.attr] = (*found.get(value.attr, ()), name)
        return found

    @cached_property
    def ties(self) -> tuple[tuple[str, str, str, str], ...]:
        """``self.a.x = self.b.y`` outside loading, as ``(a, x, b, y)``: two modules that share a parameter."""
        found = []
        for info in self.methods.values():
            if not info.self_name or not (info.name == "__init__" or "tie" in info.name):
                continue
            for node in descend(info.node):
                if isinstance(node, ast.Assign) and len(node.targets) == 1:
                    left, right = _inner(node.targets[0], info.self_name), _inner(node.value, info.self_name)
                    if left is not None and right is not None and left != right:
                        found.append((*left, *right))
        return tuple(found)

    @cached_property
    def is_dataclass(self) -> bool:
        return any(name in ("dataclass", "config") for name in decorator_names(self.node))


def _inner(node: ast.expr, self_name: str) -> tuple[str, str] | None:
    """``a`` and ``x`` of ``self.a.x``."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
        base = node.value.value
        if isinstance(base, ast.Name) and base.id == self_name:
            return node.value.attr, node.attr
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Around:
    """What stands around a statement of a method."""

    info: FunctionInfo
    conditional: bool = False
    guards: tuple[Guard, ...] = ()
    only_guarded: bool = True

    def under(self, node: ast.stmt, block: str) -> _Around:
        if isinstance(node, (ast.With, ast.AsyncWith)):
            return self if isinstance(node, ast.With) else replace(self, conditional=True)
        if isinstance(node, ast.If):
            return replace(self, conditional=True, guards=(*self.guards, (node.test, block == "body")))
        return replace(self, conditional=True, only_guarded=False)

    def write(self, value: ast.expr | None, annotation: ast.expr | None = None, **further: Any) -> InitWrite:
        return InitWrite(
            value,
            annotation,
            self.conditional,
            self.info,
            guards=self.guards,
            only_guarded=self.only_guarded,
            **further,
        )


def _collect(body: list[ast.stmt], around: _Around, found: dict[str, list[InitWrite]]) -> None:
    for node in body:
        targets: list[ast.expr] = []
        value: ast.expr | None = None
        annotation: ast.expr | None = None
        if isinstance(node, ast.Assign):
            targets, value = list(node.targets), node.value
        elif isinstance(node, ast.AnnAssign):
            targets, value, annotation = [node.target], node.value, node.annotation
        elif isinstance(node, ast.AugAssign):
            targets = [node.target]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            _collect_registration(node.value, around, found)
        for target in targets:
            items = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
            for item in items:
                if (
                    isinstance(item, ast.Attribute)
                    and isinstance(item.value, ast.Name)
                    and item.value.id == around.info.self_name
                ):
                    part, whole = (value, None) if item is target else (None, value)
                    found.setdefault(item.attr, []).append(around.write(part, annotation, unpacked=whole))
        for inner in ("body", "orelse", "finalbody"):
            block = getattr(node, inner, None)
            if block and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                _collect(block, around.under(node, inner), found)
        for handler in getattr(node, "handlers", ()):
            _collect(handler.body, around.under(node, "handlers"), found)


def _collect_registration(call: ast.Call, around: _Around, found: dict[str, list[InitWrite]]) -> None:
    target = call.func
    if not (isinstance(target, ast.Attribute) and target.attr in ("register_parameter", "register_buffer")):
        return
    if not (isinstance(target.value, ast.Name) and target.value.id == around.info.self_name and call.args):
        return
    name = call.args[0]
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        value = (
            call.args[1]
            if len(call.args) > 1
            else next((k.value for k in call.keywords if k.arg in ("param", "tensor")), None)
        )
        persistent = next((k.value for k in call.keywords if k.arg == "persistent"), None)
        kept = not (isinstance(persistent, ast.Constant) and persistent.value is False)
        found.setdefault(name.value, []).append(around.write(value, persistent=kept))
