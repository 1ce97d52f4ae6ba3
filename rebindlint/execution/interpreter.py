"""The state of one execution: storages, terms, frames, bindings; and the services every part of it uses."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rebindlint.execution.oracle import Oracle
from rebindlint.execution.unresolved import Calls
from rebindlint.execution.values import (
    FIRST,
    SECOND,
    DictValue,
    Env,
    ListValue,
    Scalar,
    Storage,
    Tensor,
    Terms,
    Unknown,
    Value,
    is_stable,
    label_of,
)
from rebindlint.index.classes import ClassInfo, FunctionInfo
from rebindlint.index.modules import Module
from rebindlint.index.tree import Index
from rebindlint.model import Binding, Dialect

if TYPE_CHECKING:
    from rebindlint.execution.steering import Wanted

__all__ = [
    "BreakLoop",
    "Condition",
    "ContinueLoop",
    "Frame",
    "Interpreter",
    "OutOfBudget",
    "Raised",
    "Returned",
    "Site",
]

MAX_STEPS = 60_000
MAX_DEPTH = 26
MOST_RECENT = 3  # of the questions that something hung on: those that may have decided


class Raised(Exception):
    """The executed code raises: whatever comes after does not happen."""


class Returned(Exception):
    def __init__(self, value: Value) -> None:
        self.value = value


class BreakLoop(Exception):
    pass


class ContinueLoop(Exception):
    pass


class OutOfBudget(Exception):
    """The execution takes too many steps; what it had found is kept, what it had not reached is a note."""


Call = tuple[str, int, str]  # the file, row and function that something is called from


@dataclass(slots=True, eq=False)
class Frame:
    """One entered function. ``transparent``: what it binds is blamed on its caller (the tree's replace helpers)."""

    info: FunctionInfo
    env: Env
    statement: ast.AST
    transparent: bool = False
    helper: Dialect | None = None
    helper_keywords: frozenset[str] = frozenset()
    rejected: bool = False  # it was given an argument that it does not take
    wanted: Wanted | None = None  # what it should give
    blocks: list[tuple[list[ast.stmt], int]] = field(default_factory=list)  # the blocks we are in, and how far
    # the calls that lead here, none of which goes on while we are here: found when first asked for
    callers: tuple[Call, ...] | None = None

    def here(self) -> Call:
        return (self.info.module.shown, getattr(self.statement, "lineno", 0), self.info.qualified)


@dataclass(slots=True, eq=False)  # not frozen: that would make each of many thousands three times as dear
class Site:
    """The statement that bound a cell, and what it bound."""

    binding: Binding
    module: Module
    statement: ast.AST
    function: str
    chain: tuple[Call, ...]
    run: int
    value: Value
    old: Value | None
    helper: Dialect | None = None
    prefer_copy: bool = False
    overlapping: bool = False
    after: int = 0  # how many conditions the run had passed
    asked: int = 0  # and how many questions had been asked


# what stands for it, how it was decided, its test, and where that stands
Condition = tuple[Hashable, bool, ast.AST, Module]


class Interpreter:
    """Runs functions of the tree over symbolic values. Never imports or runs the linted code itself."""

    def __init__(self, index: Index, oracle: Oracle) -> None:
        self.index = index
        self.oracle = oracle
        self.terms = Terms()
        self.run = 0
        self.steps = 0
        self.frames: list[Frame] = []
        self.inside_helper = 0  # how many of these are the tree's own replace helpers
        self.storages = 0
        self.weights: list[Storage] = []  # storages that a reload fills, besides registered parameters
        self.outside: set[int] = set()  # numbers of weights that something else than these objects owns
        self.sites: dict[tuple[int, object], Site] = {}
        self.moved: dict[int, Site] = {}  # id(tensor) -> the statement that moved its .data
        self.moved_earlier: dict[int, list[Site]] = {}  # and those that had moved it before, in the same run
        self.bound_before: list[Site] = []  # what the first run bound or moved and a reload leaves in its shape
        self.conditions: list[Condition] = []
        self.origins: dict[int, Site] = {}  # storage number -> the statement of a constructor that allocated it
        self.copies: dict[int, Site] = {}  # storage number -> the statement that last copied into it
        self.retransformed: dict[int, Site] = {}  # storage number -> the statement that transformed it again
        # statements that bound something in the first run -> how many questions had been asked by then
        self.bindings: dict[int, int] = {}
        self.transformed: set[int] = set()  # statements that transform in place what was there before the hook
        self.padded: set[int] = set()  # numbers of the storages that the first run padded something into
        self.filled: dict[int, Site] = {}  # storages that run-time code makes before the capture -> where it does
        self.overlaps: list[Site] = []
        self.rejected: list[Site] = []  # calls with an argument that the callee does not take
        self.exchanges: dict[int, list[tuple[tuple[str, ...], ClassInfo]]] = {}  # id of an object -> classes below it
        self.governing: list[tuple[Hashable, ...]] = []  # per arm that we are in, the questions that led into it
        self.governed: dict[str, tuple[Hashable, ...]] = {}  # an attribute -> the questions that what it holds hangs on
        self.deleted: dict[str, tuple[Hashable, ...]] = {}  # an attribute that the first run deleted -> what led there
        self.wanted: tuple[int, Wanted] | None = None  # identity of a call that is to give something
        # per parameter of the function that is called next, the questions that decided what it is given
        self.handed: dict[str, tuple[Hashable, ...]] | None = None
        self.created_by: dict[
            int, ClassInfo
        ] = {}  # id of a layer -> the class whose ``create_weights`` made its weights
        self._paths: dict[int, tuple[int, str, object]] = {}
        self.globals: dict[tuple[str, str], Value] = {}
        self.class_attributes: dict[tuple[int, str], Value] = {}
        self.cached: dict[Hashable, Value] = {}
        self.decided_cached: dict[Hashable, tuple[Hashable, ...]] = {}  # and the questions that decided each of these
        self.named: dict[str, Value] = {}  # promoted unknowns, by label
        self.keep: list[object] = []  # what is looked up by id must stay alive
        self.computed: dict[
            int, tuple[int, Tensor]
        ] = {}  # id of an object -> run and tensor of what got a computed name
        self.derived: dict[int, set[str]] = {}  # names that such a statement may have bound
        self.spelled: dict[str, str] = {}  # computed name of an attribute -> its real one, where the tree tells it
        self.ranks: dict[
            int, tuple[int, int]
        ] = {}  # term of a shape -> one whose rank is known (0: none), what its own is more
        self.reduced: set[int] = set()  # terms of shapes of which one element was made
        self.single: set[int] = set()  # terms of shapes of one element that is loaded
        self.restored = False  # a reload gave the checkpoint's dtypes and shapes back
        self.sizes: dict[int, tuple[Value, ...]] = {}  # term of a shape -> the sizes that an allocator was given
        self.unresolved: Calls = {}
        self.hit_depth = False
        self.bounds: dict[str, ClassInfo] = {}  # label of a class that is not known -> what it is below
        self.bounded: dict[int, ClassInfo] = {}  # id of a class that stands for all below a bound -> the bound
        self.choosers: dict[str, set[str]] = {}  # such a bound -> modules that make objects below it
        self.new_below: set[str] = set()  # bounds of new objects whose hook the executed one calls
        # and of objects that the first run made, whose hook the second one calls too; with a module that makes such objects
        self.kept_below: set[tuple[str, str]] = set()
        self.lazy = False  # run-time code is executed, whose arguments are no weights
        self.lost_modules = False  # the first run deleted modules whose weights a checkpoint has
        self.entered: set[tuple[int, bool]] = (
            set()
        )  # other hooks that this one calls: number, on an object it has just made
        self.covered: set[int] = set()
        self.inside_helpers: set[int] = (
            set()
        )  # conditions of the tree's replace helpers, which guard nothing by themselves
        self.passed_over: set[Hashable] = set()  # assertions that failed in the first run, which cannot have failed
        self.loaded: dict[tuple[int, int], int] = {}  # (content, path) -> term of what a loader wrote through a view
        self.revived: set[tuple[int, str]] = (
            set()
        )  # attributes that were read in the first run although we saw them deleted
        self.expects_absence = 0  # inside how many ``try`` statements that catch an AttributeError
        # a callee that raises in the first run gives something unknown; from the same call it does so in the second
        self.tolerant = False
        self.failing: set[tuple[int, int]] = set()  # such calls, with the function called

    # ---- steps and places

    def tick(self) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise OutOfBudget

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    def place(self, node: ast.AST) -> Hashable:
        home = self.frames[-1].info.module.name if self.frames else ""
        return (home, getattr(node, "lineno", 0), getattr(node, "col_offset", 0))

    def site(self, binding: Binding, value: Value, old: Value | None) -> Site:
        """The current statement, or the call of the outermost transparent helper that we are in."""
        upto = len(self.frames)
        if self.inside_helper:
            upto = next((i for i, f in enumerate(self.frames) if f.transparent), upto)
        helper = self.frames[upto] if 0 < upto < len(self.frames) else None
        blamed = self.frames[max(upto, 1) - 1]
        if blamed.callers is None:
            blamed.callers = tuple([f.here() for f in self.frames[: max(upto, 1) - 1]])
        return Site(
            Binding.REPLACE if helper is not None and binding is not Binding.RELEASE else binding,
            blamed.info.module,
            blamed.statement,
            blamed.info.qualified,
            (*blamed.callers, blamed.here()),
            self.run,
            value,
            old,
            helper.helper if helper else None,
            helper is not None and "prefer_copy" in helper.helper_keywords,
            after=len(self.conditions),
            asked=len(self.oracle.asked),
        )

    # ---- questions

    def ask(self, label: str, node: ast.AST, options: int = 2, default: int | None = None) -> int:
        place = self.place(node)
        key: Hashable = ("?", label, options) if is_stable(label) else ("@", place, options)
        return self.oracle.ask(key, place, options, default)

    def worth_trying(self, node: ast.AST, keys: Sequence[Hashable], *, done: bool) -> None:
        """Another answer to the questions is worth a path, as if a statement that binds something were behind it.

        ``done``: this path has been there. ``node`` stands for what it would come to.
        """
        goal = -id(node)
        if done:
            self.covered.add(goal)
            return
        depth = len(self.frames)
        for key in keys[-MOST_RECENT:]:
            self.oracle.goals[key] = self.oracle.goals.get(key, frozenset()) | {goal}
            self.oracle.ranks[key] = min(self.oracle.ranks.get(key, depth), depth)

    def decided(self, node: ast.AST, answer: bool) -> bool:
        """Remember which way a condition went, to name the guard that skipped a refresh."""
        if self.inside_helper:
            self.inside_helpers.add(id(node))
        self.conditions.append((id(node), answer, node, self.frames[-1].info.module))
        return answer

    # ---- tensors

    def storage(
        self,
        content: int,
        epochs: int = 0,
        *,
        zeroed: bool = False,
        weight: str = "",
        sources: frozenset[int] = frozenset(),
    ) -> Storage:
        self.storages += 1
        return Storage(self.storages, content, epochs, born=self.run, weight=weight, zeroed=zeroed, sources=sources)

    def term(self, value: Value) -> object:
        if isinstance(value, Tensor):
            if not value.path:
                return value.storage.content
            known = self.loaded.get((value.storage.content, value.path))
            return known if known is not None else self.terms.of("view", value.storage.content, value.path)
        if isinstance(value, Unknown) and value.tensor is not None:
            return self.term(value.tensor)
        if isinstance(value, Scalar):
            return value.term
        if isinstance(value, ListValue):
            return tuple(self.term(item) for item in value.items)
        return label_of(value)

    def epochs(self, values: Iterable[Value]) -> int:
        found = 0
        for value in values:
            if isinstance(value, Tensor):
                found |= value.storage.epochs
            elif isinstance(value, Unknown) and value.tensor is not None:
                found |= value.tensor.storage.epochs
            elif isinstance(value, Scalar):
                found |= value.epochs
            elif isinstance(value, ListValue):
                found |= self.epochs(value.items)
            elif isinstance(value, DictValue):
                found |= self.epochs(value.items.values())
        return found

    def sources(self, values: Iterable[Value]) -> frozenset[int]:
        found: frozenset[int] = frozenset()
        for value in values:
            tensor = value.tensor if isinstance(value, Unknown) else value
            if isinstance(tensor, Tensor):
                found |= tensor.storage.sources | {tensor.storage.number}
            elif isinstance(value, Scalar):
                found |= value.sources
            elif isinstance(value, ListValue):
                found |= self.sources(value.items)
        return found

    def fresh(
        self,
        operation: str,
        args: Iterable[Value] = (),
        *,
        dtype: str = "",
        zeroed: bool = False,
        certain: bool = True,
        shape: int = 0,
    ) -> Tensor:
        """A newly allocated tensor computed by ``operation`` from ``args``."""
        args = list(args)
        content = self.terms.of(operation, *[self.term(a) for a in args])
        storage = self.storage(content, self.epochs(args), zeroed=zeroed, sources=self.sources(args))
        return Tensor(storage, dtype or f"dtype#{content}", shape or self.terms.of("shape", content), certain=certain)

    def weight(self, label: str, *, is_parameter: bool, dtype: str = "") -> Tensor:
        """A tensor that loading filled before the hook ran."""
        storage = self.storage(self.terms.of("weight", label), SECOND if self.run == SECOND else FIRST, weight=label)
        storage.born = 0
        self.weights.append(storage)
        if not is_parameter:
            self.outside.add(storage.number)
        tensor = Tensor(storage, dtype or f"dtype({label})", self.terms.of("shape", label), is_parameter=is_parameter)
        tensor.home = label
        return tensor

    def number(self, operation: str, tensor: Tensor) -> Scalar:
        """A host number that is read from a tensor."""
        term = self.term(tensor)
        return Scalar(
            f"{operation}({term})", tensor.storage.epochs, self.terms.of(operation, term), self.sources([tensor])
        )

    def given(self, label: str) -> Tensor:
        """A tensor that run-time code is given: it derives from no weight as far as caches are concerned."""
        storage = self.storage(self.terms.of("given", label))
        storage.born = 0
        return Tensor(storage, f"dtype({label})", self.terms.of("shape", label))

    def write(
        self, target: Tensor, content: object, epochs: int, sources: frozenset[int] = frozenset(), *, whole: bool = True
    ) -> None:
        """``content`` is written into the memory of ``target``."""
        storage = target.storage
        if whole and not target.path:
            storage.content = content if isinstance(content, int) else self.terms.of("written", content)
            storage.epochs = epochs
        else:
            part = (target.path, content)
            storage.content = self.terms.mix(self._parts(storage.content) | {part})
            if epochs:
                storage.epochs = epochs if self.run == SECOND else storage.epochs | epochs
        storage.sources |= sources
        storage.changed = self.run
        storage.zeroed = False

    def transform(self, target: Tensor, content: object, epochs: int, sources: frozenset[int] = frozenset()) -> None:
        """``target`` is computed from itself in place. On top of what the first run left, that is done twice."""
        if self.run == 1 and target.storage.born == 0 and self.frames:
            self.transformed.add(id(self.frame.statement))
        if self.run == 2 and target.storage.changed == 1:
            self.retransformed.setdefault(target.storage.number, self.site(Binding.COPY, target, target))
        self.write(target, content, epochs, sources)

    def _parts(self, content: int) -> frozenset[object]:
        known = self.terms.parts_of(content)
        return known if known is not None else frozenset({content})

    def path(self, parent: int, operation: str, labels: object) -> int:
        """The term of a view of a view; remembers what it was made from."""
        number = self.terms.of("path", parent, operation, labels)
        self._paths[number] = (parent, operation, labels)
        return number

    def undone(self, path: int, operation: str, labels: object) -> int | None:
        """The path before a transposition that ``operation`` takes back."""
        if operation not in ("t", "T", "mT", "H", "transpose", "swapaxes", "swapdims"):
            return None
        parent = self._paths.get(path)
        return parent[0] if parent is not None and parent[1:] == (operation, labels) else None

    def reorders(self, path: int, of: int) -> bool:
        """Whether the view ``path`` shows the elements of the view ``of`` in another order."""
        reordered = False
        while path != of:
            parent = self._paths.get(path)
            if parent is None:
                return False
            path = parent[0]
            reordered = reordered or parent[1] in (
                "transpose",
                "t",
                "permute",
                "swapaxes",
                "swapdims",
                "movedim",
                "moveaxis",
                "T",
                "mT",
                "H",
            )
        return reordered

    def copied(self, target: Tensor, source: Tensor, *, overlapping: bool = False) -> None:
        """Remember that the current statement refreshed ``target`` by a copy."""
        site = self.site(Binding.COPY, source, target)
        self.copies[target.storage.number] = site
        if overlapping:
            self.overlaps.append(site)

    # ---- module level

    def global_value(self, module: Module, name: str) -> Value | None:
        return self.globals.get((module.name, name))
