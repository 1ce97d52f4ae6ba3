"""The index of a linted tree: modules on demand, names resolved through imports, class hierarchies, hook roots."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebindlint.index import reload_facts
from rebindlint.index.classes import ClassInfo, FunctionInfo
from rebindlint.index.import_graph import imports_in, reaches
from rebindlint.index.modules import Assigned, Defined, FunctionNode, Imported, Module, at_line_starts
from rebindlint.index.parsing import parse
from rebindlint.index.refusals import refusing_attributes
from rebindlint.model import Dialect, Protocol

if TYPE_CHECKING:
    from rebindlint.config import Config
    from rebindlint.discover import Source

__all__ = ["External", "Index", "Resolved"]


class External(str):
    """A dotted name that lies outside the linted tree, such as ``torch.empty``."""

    __slots__ = ()


Resolved = FunctionInfo | ClassInfo | Module | External | tuple[Module, Assigned]

_CLASS = re.compile(rb"^[ \t]*class[ \t]+(\w+)[ \t]*(?:\[[^\]]*\])?[ \t]*\(([^)]*)\)", re.M)
_CLASS_WORD = re.compile(rb"class[ \t]")
_MODULE_BASES = ("torch.nn.", "nn.")
_ENUMS = ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag")
_MAX_DEPTH = 12

_DRAFT = re.compile(r"\bmodels\.(?:\w+\.)*(?:\w+_)?(?:eagle\d?|mtp|medusa|dflash\d?|dspark|draft)(?:_\w+)?$")


class Index:
    """Parses nothing that no call leads to. ``failures`` maps a file to why it could not be parsed."""

    def __init__(self, sources: Sequence[Source], config: Config) -> None:
        self.sources: dict[str, Source] = {}
        for source in sources:
            self.sources.setdefault(source.module, source)
        self.by_shown = {source.shown: source for source in sources}
        self.config = config
        self.failures: dict[str, tuple[int, int, str]] = {}
        self.bytes: dict[str, bytes] = {}
        self.declared = bool(config.helpers or config.allocators)
        self.dialect = Dialect()
        self.outside = Dialect()  # of the vllm that the tree imports and does not contain
        self.dialects: dict[str, Dialect] = {}
        self.layerwise: frozenset[Path] = frozenset()  # import roots of what an engine reloads layer by layer
        self.plugins: frozenset[Path] = frozenset()  # import roots that import an engine which they do not contain
        self.readers: object = None
        self.pure: dict[object, Any] = {}  # what was found out about classes and nodes, for every execution
        self.lasting: dict[object, Any] = {}  # values of names that nothing binds anew, for every execution
        self.results: dict[object, Any] = {}  # of calls that depend on constants alone, for the executions of one hook
        self.hook_names: frozenset[str] = frozenset()  # of the functions that were found to be hooks
        self.roots: dict[int, int] = {}  # id of a hook's syntax node -> its number
        self.helpers: dict[FunctionInfo, Dialect] = {}  # replace helpers that an execution entered
        self.shapes: dict[int, object] = {}  # id of a condition -> what its arms say about it
        self.binding_statements: dict[
            tuple[int, int], frozenset[int]
        ] = {}  # id of an arm, from where -> ids of what binds something in it
        self._imported: dict[str, tuple[str, ...]] = {}
        self._modules: dict[str, Module | None] = {}
        self._resolved: dict[tuple[str, str], Resolved | None] = {}
        self._classes: dict[int, ClassInfo] = {}
        self._functions: dict[int, FunctionInfo] = {}
        self._mro: dict[int, tuple[ClassInfo, ...]] = {}
        self._externals: dict[int, frozenset[str]] = {}
        self._subclass_lines: dict[str, list[tuple[str, str]]] | None = None
        self._is_module: dict[int, bool] = {}
        self._is_enumeration: dict[int, bool] = {}
        self._methods: dict[tuple[int, str], FunctionInfo | None] = {}
        self._members: dict[tuple[int, str], tuple[ClassInfo, FunctionInfo | None] | None] = {}

    # ---- modules

    def module(self, name: str) -> Module | None:
        if name in self._modules:
            return self._modules[name]
        source = self.sources.get(name)
        parsed = parse(source, self.failures) if source is not None else None
        self._modules[name] = parsed
        return parsed

    # ---- names

    def resolve(self, module: Module, name: str, depth: int = 0) -> Resolved | None:
        """What ``name`` means at the top level of ``module``, followed through imports and re-exports."""
        key = (module.name, name)
        if key in self._resolved:
            return self._resolved[key]
        found = self._resolve(module, name, depth)
        self._resolved[key] = found
        return found

    def _resolve(self, module: Module, name: str, depth: int) -> Resolved | None:
        if depth > _MAX_DEPTH:
            return None
        entry = module.names.get(name)
        if isinstance(entry, Defined):
            return self.definition(module, entry.node)
        if isinstance(entry, Assigned):
            return (module, entry)
        if isinstance(entry, Imported):
            return self.imported(entry, depth + 1)
        if module.is_package:
            inner = self.module(f"{module.name}.{name}")
            if inner is not None:
                return inner
        for star in module.stars:
            other = self.module(star)
            if other is not None and other is not module:
                found = self.resolve(other, name, depth + 1)
                if found is not None and not isinstance(found, External):
                    return found
        return None

    def imported(self, entry: Imported, depth: int = 0) -> Resolved | None:
        if not entry.name:
            return self.module(entry.module) or External(entry.module)
        home = self.module(entry.module)
        if home is not None:
            found = self.resolve(home, entry.name, depth)
            if found is not None:
                return found
        return self.module(f"{entry.module}.{entry.name}") or External(f"{entry.module}.{entry.name}")

    def dotted(self, name: str) -> Resolved | None:
        """The thing that a dotted name from an import root means in this tree, or None."""
        if name in self.sources:
            return self.module(name)
        home, _, last = name.rpartition(".")
        if not home:
            return None
        if home in self.sources:
            module = self.module(home)
            return self.resolve(module, last) if module is not None else None
        return None

    def definition(self, module: Module, node: FunctionNode | ast.ClassDef) -> FunctionInfo | ClassInfo:
        if isinstance(node, ast.ClassDef):
            return self.class_info(module, node)
        return self.function_info(module, node)

    def class_info(self, module: Module, node: ast.ClassDef) -> ClassInfo:
        found = self._classes.get(id(node))
        if found is None:
            found = self._classes[id(node)] = ClassInfo(node, module)
        return found

    def function_info(
        self, module: Module, node: FunctionNode | ast.Lambda, owner: ClassInfo | None = None
    ) -> FunctionInfo:
        found = self._functions.get(id(node))
        if found is None:
            found = self._functions[id(node)] = FunctionInfo(node, module, owner)
        return found

    # ---- hierarchy

    def mro(self, info: ClassInfo) -> tuple[ClassInfo, ...]:
        """The class and its bases inside the tree, in an order in which a subclass precedes its bases."""
        found = self._mro.get(id(info))
        if found is None:
            self._mro[id(info)] = (info,)  # a cyclic hierarchy ends here
            found = self._mro[id(info)] = self._linearise(info)
        return found

    def _linearise(self, info: ClassInfo) -> tuple[ClassInfo, ...]:
        externals: set[str] = set()
        chains: list[list[ClassInfo]] = []
        direct: list[ClassInfo] = []
        for base in info.node.bases:
            resolved = self.resolve_expression(info.module, base)
            if isinstance(resolved, ClassInfo):
                chains.append(list(self.mro(resolved)))
                externals |= self._externals.get(id(resolved), frozenset())
                direct.append(resolved)
            elif isinstance(resolved, External):
                externals.add(str(resolved))
        self._externals[id(info)] = frozenset(externals)
        chains.append(direct)
        order = [info]
        while any(chains):
            chains = [chain for chain in chains if chain]
            head = next((c[0] for c in chains if not any(c[0] in other[1:] for other in chains)), chains[0][0])
            order.append(head)
            chains = [[c for c in chain if c is not head] for chain in chains]
        return tuple(order)

    def resolve_expression(self, module: Module, node: ast.expr) -> Resolved | None:
        """A class or function named by ``Name``, dotted ``Attribute`` or a subscripted form of either."""
        if isinstance(node, ast.Subscript):
            return self.resolve_expression(module, node.value)
        if isinstance(node, ast.Name):
            return self.resolve(module, node.id)
        if isinstance(node, ast.Attribute):
            home = self.resolve_expression(module, node.value)
            if isinstance(home, Module):
                return self.resolve(home, node.attr)
            if isinstance(home, External):
                return self.dotted(f"{home}.{node.attr}") or External(f"{home}.{node.attr}")
        return None

    def externals(self, info: ClassInfo) -> frozenset[str]:
        """Dotted names of the bases outside the tree, over the whole hierarchy."""
        self.mro(info)
        return self._externals.get(id(info), frozenset())

    def method(self, info: ClassInfo, name: str) -> FunctionInfo | None:
        key = (id(info), name)
        if key not in self._methods:
            self._methods[key] = next((cls.methods[name] for cls in self.mro(info) if name in cls.methods), None)
        return self._methods[key]

    def member(self, info: ClassInfo, name: str) -> tuple[ClassInfo, FunctionInfo | None] | None:
        """The first class in the hierarchy whose body has ``name``, and the method when it is one."""
        key = (id(info), name)
        if key not in self._members:
            home = next((cls for cls in self.mro(info) if name in cls.methods or name in cls.attributes), None)
            self._members[key] = (home, home.methods.get(name)) if home is not None else None
        return self._members[key]

    def is_enumeration(self, info: ClassInfo) -> bool:
        known = self._is_enumeration.get(id(info))
        if known is None:
            names = self.externals(info)
            known = self._is_enumeration[id(info)] = any(name.rpartition(".")[2] in _ENUMS for name in names)
        return known

    def is_subclass(self, info: ClassInfo, of: ClassInfo) -> bool:
        return of in self.mro(info)

    def is_module(self, info: ClassInfo) -> bool:
        """Whether instances are ``nn.Module``s (their tensors can be registered)."""
        known = self._is_module.get(id(info))
        if known is None:
            known = any(
                name.startswith(_MODULE_BASES) and not name.endswith(("Parameter", "Buffer"))
                for name in self.externals(info)
            )
            self._is_module[id(info)] = known
        return known

    def is_parameter_class(self, info: ClassInfo) -> bool:
        return any(
            name == "Parameter" or name.endswith((".Parameter", "nn.Buffer", "torch.Tensor", "UninitializedParameter"))
            for name in self.externals(info)
        )

    def subclasses(self, info: ClassInfo) -> list[ClassInfo]:
        """All classes of the tree below ``info``, itself included, found by name without parsing every file."""
        lines = self._subclass_index()
        found: list[ClassInfo] = [info]
        queue = [info]
        while queue:
            current = queue.pop()
            for module_name, class_name in lines.get(current.name, ()):
                module = self.module(module_name)
                resolved = self.resolve(module, class_name) if module is not None else None
                if isinstance(resolved, ClassInfo) and resolved not in found and self.is_subclass(resolved, current):
                    found.append(resolved)
                    queue.append(resolved)
        return found

    def _subclass_index(self) -> dict[str, list[tuple[str, str]]]:
        if self._subclass_lines is None:
            self._subclass_lines = {}
            for module_name, source in sorted(self.sources.items()):
                for match in at_line_starts(_CLASS, _CLASS_WORD, self.bytes.get(source.shown, b"")):
                    for base in match.group(2).decode("utf-8", "replace").split(","):
                        name = base.split("[")[0].strip().rsplit(".", 1)[-1]
                        if name and "=" not in base:
                            self._subclass_lines.setdefault(name, []).append((module_name, match.group(1).decode()))
        return self._subclass_lines

    def classes_of(self, module: Module) -> Iterator[ClassInfo]:
        stack: list[ast.stmt] = list(module.tree.body)
        while stack:  # statements only: no class stands inside an expression
            node = stack.pop()
            if isinstance(node, ast.ClassDef):
                yield self.class_info(module, node)
            for block in ("body", "orelse", "finalbody"):
                stack.extend(getattr(node, block, ()))

    # ---- reloads

    def protocol_of(self, module: str) -> Protocol:
        """How the engine that the module belongs to (vllm itself, or what plugs into it) reloads weights."""
        source = self.sources.get(module)
        layerwise = source is not None and import_root(source) in self.layerwise
        return Protocol.LAYERWISE if layerwise else Protocol.DIRECT

    @cached_property
    def kept_live(self) -> frozenset[str]:
        """Names of tensors that the tree's own layerwise reload neither replaces before the hook nor puts back after it."""
        return reload_facts.kept_live(self)

    @cached_property
    def refusing(self) -> frozenset[str]:
        """Names of attributes with which a module keeps the tree's engine from loading weights again."""
        return refusing_attributes(self)

    @cached_property
    def restores_over_plain(self) -> bool:
        """Whether the tree's own layerwise reload first deletes whatever stands under the name of a parameter that it restores."""
        return reload_facts.restores_over_plain(self)

    @cached_property
    def leaves_unsaved(self) -> bool:
        """Whether the tree's own layerwise reload puts buffers that are not persistent back without refreshing them."""
        return reload_facts.leaves_unsaved(self)

    @cached_property
    def _leaves_drafts(self) -> bool:
        return reload_facts.leaves_drafts(self)

    def is_of_plugin(self, module: str) -> bool:
        """Whether the engine that runs the module is somewhere else."""
        source = self.sources.get(module)
        return source is not None and import_root(source) in self.plugins

    def is_never_reloaded(self, module: str) -> bool:
        """Whether this is the file of a draft model, by its name, and the engine in the tree reloads the model alone that it drafts for."""
        return _DRAFT.search(module) is not None and self._leaves_drafts

    # ---- what fixes ask

    def dialect_for(self, module: str) -> Dialect:
        """The replace helper that code in ``module`` should call: the nearest one that shares its top package."""
        return self.dialects.get(module.split(".")[0], self.dialect)

    def creates_cycle(self, importer: str, imported: str) -> bool:
        """Whether a top-level import of ``imported`` in ``importer`` would close a cycle of imports that is not there yet."""
        return reaches(self, imported, importer) and not reaches(self, importer, imported)

    def imports_of(self, name: str) -> tuple[str, ...]:
        """Modules of the tree that a module imports without condition, from its text: parsing them all would take too long."""
        known = self._imported.get(name)
        if known is None:
            source = self.sources.get(name)
            raw = self.bytes.get(source.shown, b"") if source is not None else b""
            is_package = source is not None and source.path.stem == "__init__"
            known = self._imported[name] = tuple(m for m in imports_in(raw, name, is_package) if m in self.sources)
        return known


def import_root(source: Source) -> Path:
    """The folder that the dotted name of a file is counted from."""
    up = source.module.count(".") + (source.path.stem == "__init__")
    return source.path.parents[min(up, len(source.path.parents) - 1)]
