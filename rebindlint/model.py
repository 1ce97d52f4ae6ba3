"""What flows between the stages: places, facts, diagnostics, fixes.

Everything here is frozen, hashable and holds no syntax tree, so that it can be pickled, cached,
compared and printed. Rows and columns count from 1; columns count characters, not bytes.
The vocabulary is that of ``docs/hazard-model.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

__all__ = [
    "Applicability",
    "Binding",
    "Cell",
    "Diagnostic",
    "Dialect",
    "Edit",
    "Fix",
    "Frame",
    "Hazard",
    "HelperKind",
    "Place",
    "Position",
    "Protocol",
    "Rebinding",
    "RebindlintError",
    "Severity",
    "Value",
]


class RebindlintError(Exception):
    """The work could not be done; the message is one line for a person."""


class Severity(StrEnum):
    """How much a diagnostic matters; ``NOTE`` never changes the exit code."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Protocol(StrEnum):
    """How weights come back between the two runs of a hook."""

    DIRECT = "direct"
    LAYERWISE = "layerwise"
    SLEEP = "sleep"


class Hazard(StrEnum):
    """Which of the three promises to a captured graph is broken."""

    ADDRESS = "address"  # a visible cell is bound to other storage
    FRESHNESS = "freshness"  # the captured storage was not refreshed, or from a stale source
    LIFETIME = "lifetime"  # nothing owns the captured storage any more


class Binding(StrEnum):
    """By which kind of statement the cell came to its state at the check."""

    ATTRIBUTE = "attribute"  # o.x = tensor, setattr(o, "x", tensor)
    DATA = "data"  # p.data = tensor
    PARAMETER = "parameter"  # o.x = Parameter(...), register_parameter, register_buffer
    REPLACE = "replace"  # the tree's replace helper
    SLOT = "slot"  # d[k] = tensor, list or tuple slot, _parameters[...]
    RELEASE = "release"  # del o.x, o.x = None, delattr
    HOLDER = "holder"  # the object that owns the cell was built anew
    NONE = "none"  # nothing wrote: the refresh was skipped
    COPY = "copy"  # a copy_ was executed (RB301, RB302)
    SCALAR = "scalar"  # a host scalar read from a weight (RB202)


class Value(StrEnum):
    """Where the tensor that was bound comes from."""

    FRESH = "fresh"  # newly allocated
    VIEW = "view"  # shares storage with something that exists already
    UNKNOWN = "unknown"  # came out of code that could not be entered
    ABSENT = "absent"  # no tensor


@dataclass(frozen=True, slots=True, order=True)
class Position:
    row: int
    column: int


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A stretch of source text; ``end`` is exclusive. ``filename`` is as the user would write it."""

    filename: str
    start: Position
    end: Position

    def __str__(self) -> str:
        return f"{self.filename}:{self.start.row}:{self.start.column}"


@dataclass(frozen=True, slots=True)
class Frame:
    """One step of a call chain: in ``filename`` at ``row``, ``text`` happens."""

    filename: str
    row: int
    text: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A place that holds a tensor.

    ``path`` names it from the hook's own variables (``layer.w13_weight``, ``self.kernel.workspace``,
    ``self.cache['a']``); ``name`` is its last attribute or slot; ``owner`` the class that holds it where
    known (qualified name), else ``""``.
    """

    path: str
    name: str
    owner: str = ""
    owner_is_module: bool = False
    registered: bool = False


class HelperKind(StrEnum):
    """What the tree's ``replace_parameter`` (or its namesake) can do, read from its source."""

    REBINDS = "rebinds"  # always a new Parameter (vLLM <= 0.20)
    PREFER_COPY = "prefer-copy"  # copies when asked and shape, dtype, device agree (0.24-0.29)
    COPIES = "copies"  # copies by itself when shape, stride, dtype, device agree (0.33)
    COPIES_OR_MOVES = "copies-or-moves"  # SGLang's copy_or_rebind_param


@dataclass(frozen=True, slots=True)
class Dialect:
    """The helper a fix should call in this tree; ``module`` is ``""`` when there is none."""

    module: str = ""
    function: str = ""
    kind: HelperKind | None = None
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rebinding:
    """A fact of the execution: what the second run left of a captured cell, and why.

    ``statement`` is the simple statement (whole, all lines) in which the second run bound the other
    storage; when nothing wrote it is the guard, or the statement of the first run. ``chain`` leads from the
    hook to that statement, outermost first.
    """

    hazard: Hazard
    binding: Binding
    cell: Cell
    hook: str  # Class.method, as in the source
    hook_place: Place
    statement: Place
    value: Value
    protocols: frozenset[Protocol]
    chain: tuple[Frame, ...] = ()
    function: str = ""  # qualified name of the function that holds the statement
    module: str = ""  # dotted name of the module that holds the statement
    # what the rules ask
    certain: bool = True  # False: the value came out of code outside the tree, and nothing says that it is a tensor
    value_is_parameter: bool = False  # the bound value is an nn.Parameter (or a subclass)
    weight_dependent: bool = False  # the contents derive from loaded weights
    prefer_copy_passed: bool = False
    prefer_copy_unsupported: bool = False
    retransformed: bool = False  # the second run transformed what the first had transformed
    overlapping: bool = False  # a copy_ whose source is a view of its destination
    source_lost: bool = False  # the derived tensor overwrote what it was derived from
    restored: bool = False  # under direct reloads only where the checkpoint's dtype and shape are given back first
    lazy: bool = False  # run-time code derived it, behind a guard, when it was first needed
    shared: bool = False  # the parameter stood under another name as well, which keeps the old memory
    lost: bool = False  # sleeping discarded its contents, and nothing brings them back
    not_called: bool = False  # nothing skips the refresh but that the reload does not call the hook again
    guarded: Place | None = None  # the condition that skipped the refresh
    # what the fixers ask
    from_loading: bool = False  # a model does it while it loads its weights
    receiver_is_module: bool = False  # the object that gets the attribute is an nn.Module
    existed_before: bool = False  # the cell was bound before the hook ran for the first time
    may_alias: bool = False  # the value may share storage with what the cell held
    changes_strides: bool = False  # the value is strided otherwise than what the cell held
    same_layout: bool = False  # shape and dtype of value and captured tensor provably agree on reload
    zeroed: bool = False  # the allocator promises zeros
    helper: Dialect | None = None  # the helper that was called (REPLACE)

    @property
    def key(self) -> tuple[str, int, int, str, str, str]:
        """Facts with equal keys are one finding seen along several paths or from several hooks."""
        s = self.statement
        return (s.filename, s.start.row, s.start.column, self.cell.name, self.binding, self.hazard)


class Applicability(StrEnum):
    """Whether a fix may be applied without a person looking at it (ruff's words)."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display"


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace the text of ``place`` by ``content`` (an insertion when start equals end)."""

    place: Place
    content: str


@dataclass(frozen=True, slots=True)
class Fix:
    applicability: Applicability
    message: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """What is reported. ``attribute``, ``hook``, ``reload`` and ``trace`` are empty for diagnostics
    that are not about a hook (parse errors, suppressions)."""

    code: str
    name: str
    message: str
    severity: Severity
    place: Place
    attribute: str = ""
    hook: str = ""
    reload: tuple[Protocol, ...] = ()
    trace: tuple[Frame, ...] = ()
    fix: Fix | None = None
    help: str = ""  # what to do by hand, when there is no fix
    fact: Rebinding | None = field(default=None, compare=False, repr=False)

    @property
    def sort_key(self) -> tuple[str, int, int, str, str]:
        return (self.place.filename, self.place.start.row, self.place.start.column, self.code, self.attribute)
