"""Symbolic values: what a variable of the executed hook can hold."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rebindlint.index.classes import ClassInfo, FunctionInfo
    from rebindlint.index.modules import Module

__all__ = [
    "DELETED",
    "FIRST",
    "LOST",
    "NOTHING",
    "SECOND",
    "BoundMethod",
    "ClassValue",
    "Const",
    "DictValue",
    "Env",
    "External",
    "Function",
    "ListValue",
    "ModuleValue",
    "Obj",
    "Partial",
    "Scalar",
    "Storage",
    "SuperValue",
    "Tensor",
    "Terms",
    "Unknown",
    "Value",
    "is_hollow",
    "is_stable",
    "label_of",
]

FIRST, SECOND, LOST = 1, 2, 4  # bits of Storage.epochs: from which load the contents derive


class Terms:
    """Hash-consed expressions: equal expressions get equal numbers, whatever run computed them."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[object, ...], int] = {(): 0}  # 0 is the whole, as a path
        self._mixes: dict[int, frozenset[object]] = {}

    def of(self, *parts: object) -> int:
        number = self._numbers.get(parts)
        if number is None:
            number = self._numbers[parts] = len(self._numbers)
        return number

    def parts_of(self, number: int) -> frozenset[object] | None:
        """The parts of a ``mix`` term, None for any other term."""
        return self._mixes.get(number)

    def mix(self, parts: frozenset[object]) -> int:
        """Memory written part by part: the same parts give the same term in whatever order and however often."""
        number = self.of("mix", parts)
        self._mixes[number] = parts
        return number


class Storage:
    """Memory of a tensor. ``content`` is the term of what it holds, ``epochs`` the loads that went into it."""

    __slots__ = (
        "born",
        "cast",
        "changed",
        "content",
        "empty",
        "epochs",
        "number",
        "on_host",
        "reordered",
        "scratch",
        "sources",
        "weight",
        "zeroed",
    )

    def __init__(
        self,
        number: int,
        content: int,
        epochs: int = 0,
        *,
        born: int = 0,
        weight: str = "",
        zeroed: bool = False,
        sources: frozenset[int] = frozenset(),
    ) -> None:
        self.number = number
        self.content = content
        self.epochs = epochs
        self.changed = born  # in which run its contents were last written; loading makes them new
        self.born = born  # in which run it was allocated: 0 before the hook
        self.weight = weight  # name of the weight that loading writes here, if any
        self.zeroed = zeroed
        self.cast = False  # a copy only because of another dtype, of what was there before the hook
        self.reordered = False  # by its name what made it puts elements into another order, which takes other memory
        self.scratch = False  # nobody relies on what it holds
        self.empty = False  # known to have no elements, and so no address
        self.on_host = False  # known not to be on the device: no graph can hold it
        self.sources = sources  # storages it was computed from


class Value:
    __slots__ = ()


class Tensor(Value):
    """A tensor object; several may share a storage. ``path`` is the term of the view, 0 for the whole."""

    __slots__ = (
        "attributes",
        "certain",
        "dtype",
        "home",
        "is_parameter",
        "path",
        "shape",
        "site",
        "storage",
        "strided",
        "type_name",
    )

    def __init__(
        self,
        storage: Storage,
        dtype: str,
        shape: int,
        *,
        path: int = 0,
        is_parameter: bool = False,
        strided: bool = False,
        certain: bool = True,
        type_name: str = "",
    ) -> None:
        self.storage = storage
        self.dtype = dtype
        self.shape = shape
        self.path = path
        self.is_parameter = is_parameter
        self.strided = strided  # known to be non-contiguous
        self.certain = certain  # False: came out of code outside the tree that may return something else
        self.type_name = type_name
        self.attributes: dict[str, Value] = {}
        self.site: object = None  # the statement that last moved ``.data``
        self.home: str = ""

    def alias(self) -> Tensor:
        """A new tensor object over the same storage, as ``.data`` gives."""
        return Tensor(self.storage, self.dtype, self.shape, path=self.path, strided=self.strided, certain=self.certain)


@dataclass(slots=True, eq=False)
class Const(Value):
    """A value that Python compares by equality: None, bool, number, string, enumeration member."""

    value: object


@dataclass(slots=True, eq=False)
class Scalar(Value):
    """A host number that was read from a tensor."""

    label: str
    epochs: int
    term: int
    sources: frozenset[int] = frozenset()  # the storages that it comes from, as those of a tensor


class Unknown(Value):
    """Something stable: the same label is the same thing in both runs. It turns into a tensor when it is used as one."""

    __slots__ = ("home", "label", "made_from", "tensor")

    def __init__(
        self, label: str, home: tuple[Obj, str] | None = None, made_from: tuple[str, list[Value]] | None = None
    ) -> None:
        self.label = label if len(label) <= 160 else label[:157] + "..."
        self.home = home
        self.made_from = made_from  # the operation that computes it: a new tensor, should it turn out to be one
        self.tensor: Tensor | None = None


class External(Value):
    """A name outside the tree, such as ``torch.empty``."""

    __slots__ = ("label",)

    def __init__(self, label: str) -> None:
        self.label = label


class Obj(Value):
    """An object. ``exact``: its class is known, else only a bound of it."""

    __slots__ = (
        "absent",
        "attributes",
        "born",
        "cls",
        "exact",
        "home",
        "initial",
        "is_module",
        "label",
        "loaded",
        "plain",
        "registered",
        "unsaved",
    )

    def __init__(
        self, label: str, cls: ClassInfo | None = None, *, is_module: bool = False, exact: bool = True, born: int = 0
    ) -> None:
        self.label = label
        self.cls = cls
        self.is_module = is_module
        self.exact = exact
        self.born = born
        self.attributes: dict[str, Value] = {}
        self.registered: set[str] = set()
        self.unsaved: set[str] = set()  # buffers registered as not persistent
        self.loaded: set[str] = set()  # registered as parameters before the hook ran for the first time
        self.home: tuple[Obj, str] | None = None  # where it stands, when it only looks like an object so far
        self.initial: dict[str, tuple[str, int]] = {}  # bound before the hook ran for the first time: dtype and shape
        self.absent: set[str] = set()  # known not to exist until bound
        self.plain: set[str] = set()  # found to be no parameters before the hook ran for the first time


@dataclass(slots=True, eq=False)
class Function(Value):
    info: FunctionInfo
    env: Env | None = None
    receiver: Value | None = None


@dataclass(slots=True, eq=False)
class Partial(Value):
    function: Value
    args: list[Value]
    keywords: dict[str, Value]


@dataclass(slots=True, eq=False)
class BoundMethod(Value):
    """A method of a built-in value: tensor, list, dict, string, or of something unknown."""

    receiver: Value
    name: str


@dataclass(slots=True, eq=False)
class ClassValue(Value):
    info: ClassInfo


@dataclass(slots=True, eq=False)
class ModuleValue(Value):
    module: Module


@dataclass(slots=True, eq=False)
class SuperValue(Value):
    receiver: Value
    after: ClassInfo


@dataclass(slots=True, eq=False)
class ListValue(Value):
    """List, tuple or set; ``closed`` when all items are known."""

    items: list[Value]
    closed: bool = True
    hangs_on: Sequence[
        tuple[Hashable, ...]
    ] = ()  # per item the questions that decided what a variable written here held


@dataclass(slots=True, eq=False)
class DictValue(Value):
    items: dict[object, Value] = field(default_factory=dict)
    label: str = ""
    closed: bool = True
    owner: Obj | None = None  # whose attributes these are (``__dict__``, ``_parameters``)


class Env:
    """Variables of one call; ``parent`` is the enclosing function's, for closures."""

    __slots__ = ("function", "hangs_on", "made_by", "module", "parent", "receiver", "variables")

    def __init__(self, module: Module, function: FunctionInfo | None = None, parent: Env | None = None) -> None:
        self.module = module
        self.function = function
        self.parent = parent
        self.receiver: Value | None = None
        self.variables: dict[str, Value] = {}
        self.hangs_on: dict[str, tuple[Hashable, ...]] = {}  # the questions that decided what a variable holds
        # variable -> the assignment of a call's result that bound it, and which part of the result it is
        self.made_by: dict[str, tuple[int, int | None]] = {}

    def find(self, name: str) -> Value | None:
        env: Env | None = self
        while env is not None:
            value = env.variables.get(name)
            if value is not None:
                return value
            env = env.parent
        return None


NOTHING = Const(None)
DELETED = Const("<deleted>")


def label_of(value: Value) -> str:
    """A label that is the same in both runs for the same configuration, ``"?"`` where there is none."""
    if isinstance(value, Const):
        return repr(value.value)
    if isinstance(value, (Unknown, External, Obj, Scalar)):
        return value.label
    if isinstance(value, ClassValue):
        return value.info.name
    if isinstance(value, ModuleValue):
        return value.module.name
    if isinstance(value, Function):
        return value.info.qualified
    if isinstance(value, ListValue) and value.closed and len(value.items) <= 4:
        return "(" + ",".join(label_of(item) for item in value.items) + ")"
    if isinstance(value, BoundMethod):
        return f"{label_of(value.receiver)}.{value.name}"
    if isinstance(value, Tensor):
        return f"tensor#{value.path}" if not value.home else value.home
    return "?"


def is_stable(label: str) -> bool:
    return "?" not in label and "tensor#" not in label


def is_hollow(value: Value) -> bool:
    """None, or a sequence of nothing but that."""
    if isinstance(value, ListValue):
        return value.closed and bool(value.items) and all(is_hollow(item) for item in value.items)
    return isinstance(value, Const) and value.value is None
