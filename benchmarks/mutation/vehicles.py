"""How an injected statement comes to run: directly, in a helper, in the constructor of an object, in a callback."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HOLDERS", "VEHICLES", "Vehicle"]


@dataclass(frozen=True, slots=True)
class Vehicle:
    """``call`` stands in the hook. ``$S`` is the injected statement, in which the object is called ``target`` and the
    weight ``weight``; ``module`` goes to the end of the file, ``method`` behind the hook in its class."""

    place: str
    name: str
    call: str
    module: str = ""
    method: str = ""


_HELPER = "def mutant_helper(target, weight):\n    $S"
_BIND = "def mutant_bind(target, weight):\n    $S"

VEHICLES: tuple[Vehicle, ...] = (
    Vehicle("helper", "function", "mutant_helper($R, $W)", module=_HELPER),
    Vehicle("helper", "keywords", "mutant_helper(weight=$W, target=$R)", module=_HELPER),
    Vehicle(
        "helper",
        "two-deep",
        "mutant_outer($R, $W)",
        module="def mutant_outer(*args):\n    mutant_helper(*args)\n\n\n" + _HELPER,
    ),
    Vehicle(
        "helper", "method", "self.mutant_method($R, $W)", method="def mutant_method(self, target, weight):\n    $S"
    ),
    Vehicle(
        "helper",
        "static",
        "self.mutant_static($R, $W)",
        method="@staticmethod\ndef mutant_static(target, weight):\n    $S",
    ),
    Vehicle(
        "helper", "local", "def mutant_local_function():\n    target, weight = $R, $W\n    $S\nmutant_local_function()"
    ),
    Vehicle(
        "helper",
        "returning",
        "if mutant_checked($R, $W):\n    pass",
        module="def mutant_checked(target, weight):\n    $S\n    return True",
    ),
    Vehicle(
        "helper",
        "decorated",
        "mutant_wrapped($R, $W)",
        module=(
            "def mutant_decorator(function):\n    def mutant_inner(*args, **kwargs):\n        return function(*args, **kwargs)\n\n"
            "    return mutant_inner\n\n\n@mutant_decorator\ndef mutant_wrapped(target, weight):\n    $S"
        ),
    ),
    Vehicle(
        "helper",
        "context",
        "with mutant_scope($R, $W):\n    pass",
        module="import contextlib\n\n\n@contextlib.contextmanager\ndef mutant_scope(target, weight):\n    $S\n    yield",
    ),
    Vehicle(
        "callback",
        "argument",
        "mutant_run(mutant_bind, $R, $W)",
        module=f"def mutant_run(function, *args):\n    function(*args)\n\n\n{_BIND}",
    ),
    Vehicle("callback", "loop", "for mutant_step in (mutant_bind,):\n    mutant_step($R, $W)", module=_BIND),
    Vehicle("callback", "table", 'mutant_table = {"bind": mutant_bind}\nmutant_table["bind"]($R, $W)', module=_BIND),
    Vehicle(
        "callback",
        "registry",
        'MUTANT_TABLE["bind"]($R, $W)',
        module=f'{_BIND}\n\n\nMUTANT_TABLE = {{"bind": mutant_bind}}',
    ),
    Vehicle("callback", "partial", "import functools\nfunctools.partial(mutant_bind, $R)($W)", module=_BIND),
    Vehicle("callback", "lambda", "mutant_later = lambda: mutant_bind($R, $W)\nmutant_later()", module=_BIND),
    Vehicle(
        "callback",
        "closure",
        "mutant_made($R)($W)",
        module="def mutant_made(target):\n    def mutant_closure(weight):\n        $S\n\n    return mutant_closure",
    ),
    Vehicle(
        "callback",
        "bound",
        "mutant_later = self.mutant_method\nmutant_later($R, $W)",
        method="def mutant_method(self, target, weight):\n    $S",
    ),
)

_CLASS = "class MutantHolder:\n    def __init__(self, weight):\n        self.inner = $V"

# ``$V`` is a tensor made of ``weight``; name -> (statement in the hook, at the end of the file, read at run time)
HOLDERS: dict[str, tuple[str, str, str]] = {
    "instance": ("$R.$A = MutantHolder($W)", _CLASS, "$R.$A.inner"),
    "keyword": ("$R.$A = MutantHolder(weight=$W)", _CLASS, "$R.$A.inner"),
    "factory": (
        "$R.$A = mutant_factory($W)",
        _CLASS + "\n\n\ndef mutant_factory(weight):\n    return MutantHolder(weight)",
        "$R.$A.inner",
    ),
    "class-argument": (
        "$R.$A = mutant_build(MutantHolder, $W)",
        _CLASS + "\n\n\ndef mutant_build(cls, *args):\n    return cls(*args)",
        "$R.$A.inner",
    ),
    "alternative": (
        "$R.$A = MutantHolder.mutant_from($W)",
        _CLASS + "\n\n    @classmethod\n    def mutant_from(cls, weight):\n        return cls(weight)",
        "$R.$A.inner",
    ),
    "base": (
        "$R.$A = MutantDerived($W)",
        _CLASS
        + "\n\n\nclass MutantDerived(MutantHolder):\n    def __init__(self, weight):\n        super().__init__(weight)\n        self.size = 8",
        "$R.$A.inner",
    ),
    "nested": (
        "$R.$A = MutantOuter($W)",
        _CLASS
        + "\n\n\nclass MutantOuter:\n    def __init__(self, weight):\n        self.holder = MutantHolder(weight)",
        "$R.$A.holder.inner",
    ),
    "by-method": (
        "$R.$A = MutantMaker($W)",
        "class MutantMaker:\n    def __init__(self, weight):\n        self.mutant_fill(weight)\n\n    def mutant_fill(self, weight):\n        self.inner = $V",
        "$R.$A.inner",
    ),
    "dataclass": (
        "$R.$A = MutantRecord($X)",
        "import dataclasses\n\n\n@dataclasses.dataclass\nclass MutantRecord:\n    inner: object",
        "$R.$A.inner",
    ),
    "post-init": (
        "$R.$A = MutantRecord($W)",
        "import dataclasses\n\n\n@dataclasses.dataclass\nclass MutantRecord:\n    weight: object\n\n    def __post_init__(self):\n        weight = self.weight\n        self.inner = $V",
        "$R.$A.inner",
    ),
    "default-factory": (
        "$R.$A = MutantRecord()",
        "import dataclasses\nimport torch\n\n\n@dataclasses.dataclass\nclass MutantRecord:\n    inner: object = dataclasses.field(default_factory=lambda: torch.zeros(8))",
        "$R.$A.inner",
    ),
    "named-tuple": (
        "$R.$A = MutantTuple($X)",
        "import typing\n\n\nclass MutantTuple(typing.NamedTuple):\n    inner: object",
        "$R.$A.inner",
    ),
    "namespace": ("import types\n$R.$A = types.SimpleNamespace(inner=$X)", "", "$R.$A.inner"),
    "partial": (
        "import functools\n$R.$A = functools.partial(mutant_step, $X)",
        "def mutant_step(inner, x):\n    return inner * x",
        "$R.$A(2)",
    ),
    "closure": (
        "$R.$A = mutant_step_of($W)",
        "def mutant_step_of(weight):\n    inner = $V\n\n    def mutant_step(x):\n        return inner * x\n\n    return mutant_step",
        "$R.$A(2)",
    ),
    "lambda": ("mutant_inner = $X\n$R.$A = lambda x: mutant_inner * x", "", "$R.$A(2)"),
    "bound-method": (
        "$R.$A = MutantHolder($W).mutant_step",
        _CLASS + "\n\n    def mutant_step(self, x):\n        return self.inner * x",
        "$R.$A(2)",
    ),
    "list": ("$R.$A = [MutantHolder($W)]", _CLASS, "$R.$A[0].inner"),
}
