"""The hazards that are injected: statements with holes for the object, the attribute and the weight.

``$R`` is the object that gets the attribute, ``$A`` the attribute, ``$P`` a loaded weight. Each comes with a twin: the same
cell treated as it should be, which must stay silent.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

from rebindlint.model import HelperKind

__all__ = ["OPERATORS", "Operator", "filled"]

_ATTRIBUTE = frozenset({"RB101"})
_ADDRESS = frozenset({"RB101", "RB103", "RB105"})
_PARAMETER = frozenset({"RB102", "RB103", "RB104", "RB105"})
_STALE = frozenset({"RB204", "RB203", "RB205"})
_AGAIN = frozenset({"RB301"})


@dataclass(frozen=True, slots=True)
class Operator:
    """``hazard`` is injected where the hook comes by, ``setup`` where the object is made, ``reads`` in run-time code.

    ``on``: ``any`` object, a ``module``, the hook's ``self`` (whose constructor gets the setup), or the weight's own
    ``owner``. ``helpers``: only where the tree's own replace helper (``$F`` of ``$M``) is of one of these kinds. ``codes`` are
    those under which the injected cell may be reported.
    """

    kind: str
    variant: str
    hazard: str
    codes: frozenset[str] = _ADDRESS
    twin: str = ""
    setup: str = ""
    reads: str = "$R.$A"
    on: str = "any"
    helpers: frozenset[HelperKind] = frozenset()

    @property
    def name(self) -> str:
        return f"{self.kind}.{self.variant}"

    @property
    def needs_weight(self) -> bool:
        return "$P" in self.hazard


def filled(template: str, **holes: str) -> str:
    return Template(template).substitute(holes)


_ONCE = 'if not hasattr($R, "$A"):\n    $R.$A = '
_REFRESHED = _ONCE + "$P.clone()\nelse:\n    $R.$A.copy_($P)"
_ZEROS = _ONCE + 'torch.zeros(64, dtype=torch.int32, device="cuda")'


_SLOT = 'if "w" not in $R.$A:\n    $R.$A["w"] = '
_SLOT_REFRESHED = _SLOT + '$P.clone()\nelse:\n    $R.$A["w"].copy_($P)'
_IN_SLOT = {"setup": "$R.$A = {}", "reads": '$R.$A["w"]', "on": "self"}
_NONE_REFRESHED = "if $R.$A is None:\n    $R.$A = $P.clone()\nelse:\n    $R.$A.copy_($P)"


def _workspace(variant: str, hazard: str, **more: object) -> Operator:
    return Operator("fresh-workspace", variant, hazard, **{"twin": _ZEROS, **more})  # type: ignore[arg-type]


def _bind(variant: str, hazard: str, **more: object) -> Operator:
    return Operator("bind-not-copy", variant, hazard, **{"twin": _REFRESHED, **more})  # type: ignore[arg-type]


def _once(variant: str, hazard: str, **more: object) -> Operator:
    return Operator("drop-refresh", variant, hazard, **{"codes": _STALE, "twin": _REFRESHED, **more})  # type: ignore[arg-type]


def _again(variant: str, hazard: str, **more: object) -> Operator:
    setup = "$R.$A = torch.ones(8)"
    twin = "$R.$A.fill_(1)\n$R.$A.mul_(0.5)"
    return Operator("double-transform", variant, hazard, _AGAIN, twin, setup, on="self", **more)  # type: ignore[arg-type]


def _unguarded(variant: str, hazard: str, **more: object) -> Operator:
    return Operator("remove-guard", variant, hazard, **{"twin": _ZEROS, **more})  # type: ignore[arg-type]


def _dropped(variant: str, hazard: str, **more: object) -> Operator:
    importing = "from $M import $F as mutant_replace\n"
    twin = importing + hazard[:-1] + ", prefer_copy=True)"
    codes = frozenset({"RB103", "RB104"})
    kinds = frozenset({HelperKind.PREFER_COPY})
    given = {"twin": twin, **more}
    return Operator("drop-prefer-copy", variant, importing + hazard, codes, helpers=kinds, **given)  # type: ignore[arg-type]


_CLONED = "torch.nn.Parameter($P.data.clone(), requires_grad=False)"

OPERATORS: tuple[Operator, ...] = (
    _workspace("zeros", '$R.$A = torch.zeros(64, dtype=torch.int32, device="cuda")'),
    _workspace("empty", '$R.$A = torch.empty(16, 16, dtype=torch.uint8, device="cuda")'),
    _workspace("full", '$R.$A = torch.full((8,), 1.0, device="cuda")'),
    _workspace("annotated", "$R.$A: torch.Tensor = torch.arange(8)"),
    _workspace("setattr", 'setattr($R, "$A", torch.zeros(8))'),
    _workspace("chained", "$R.$A = $R.${A}_again = torch.zeros(8)"),
    _workspace("unpacked", "$R.$A, $R.${A}_size = torch.zeros(8), 8"),
    _workspace("loop", 'for mutant_name in ("$A", "${A}_again"):\n    setattr($R, mutant_name, torch.zeros(8))'),
    _workspace("conditional", "$R.$A = torch.zeros(8) if torch.is_grad_enabled() else torch.empty(8)"),
    _workspace("local", "mutant_local = torch.zeros(8)\n$R.$A = mutant_local"),
    _workspace("list", "$R.$A = [torch.zeros(8), torch.zeros(8)]", reads="$R.$A[0]"),
    _workspace("dictionary", '$R.$A = {"locks": torch.zeros(8)}', reads='$R.$A["locks"]'),
    _workspace("slot", '$R.$A["w"] = torch.zeros(8)', twin=_SLOT + "torch.zeros(8)", **_IN_SLOT),
    _workspace("buffer", '$R.register_buffer("$A", torch.zeros(8), persistent=False)', on="module"),
    _workspace("like", "$R.$A = torch.empty_like($P)"),
    _workspace("new", "$R.$A = $P.new_zeros(8)"),
    _bind("clone", "$R.$A = $P.clone()"),
    _bind("scaled", "$R.$A = $P * 2", twin=_ONCE + "$P * 2\nelse:\n    $R.$A.copy_($P * 2)"),
    _bind(
        "concatenated",
        "$R.$A = torch.cat([$P, $P])",
        twin=_ONCE + "torch.cat([$P, $P])\nelse:\n    $R.$A.copy_(torch.cat([$P, $P]))",
    ),
    _bind("transposed", "$R.$A = $P.data.t().clone()"),
    _bind("setattr", 'setattr($R, "$A", $P.clone())'),
    _bind(
        "formatted",
        'for mutant_part in ("up", "down"):\n    setattr($R, f"${A}_{mutant_part}", $P.clone())',
        reads="$R.${A}_up",
    ),
    _bind("comprehension", "$R.$A = [mutant_item.clone() for mutant_item in ($P, $P)]", reads="$R.$A[0]"),
    _bind("slot", '$R.$A["w"] = $P.clone()', twin=_SLOT_REFRESHED, **_IN_SLOT),
    _bind("preset", "$R.$A = $P.clone()", setup="$R.$A = None", on="self", twin=_NONE_REFRESHED),
    _bind("parameter", f"$R.$A = {_CLONED}"),
    _bind("registered", f'$R.register_parameter("$A", {_CLONED})', on="module"),
    _bind("buffer", '$R.register_buffer("$A", $P.clone())', on="module"),
    _bind(
        "data",
        "$P.data = $P.data.clone()",
        codes=_PARAMETER,
        reads="$P",
        on="owner",
        twin="$P.data.copy_($P.data.clone())",
    ),
    _bind(
        "rewrapped", f"$P = {_CLONED}", codes=_PARAMETER, reads="$P", on="owner", twin="$P.data.copy_($P.data.clone())"
    ),
    _bind("deleted", f"mutant_kept = {_CLONED}\ndel $P\n$P = mutant_kept", codes=_PARAMETER, reads="$P", on="owner"),
    _unguarded("wrong-attribute", 'if not hasattr($R, "${A}_other"):\n    $R.$A = torch.zeros(8)'),
    _unguarded("unset-flag", 'if not getattr($R, "${A}_done", False):\n    $R.$A = torch.zeros(8)'),
    _unguarded("reset", "$R.$A = None\nif $R.$A is None:\n    $R.$A = torch.zeros(8)"),
    _unguarded("deleted", 'if hasattr($R, "$A"):\n    del $R.$A\n$R.$A = torch.zeros(8)'),
    _unguarded("both-arms", 'if hasattr($R, "$A"):\n    $R.$A = torch.ones(8)\nelse:\n    $R.$A = torch.zeros(8)'),
    _unguarded(
        "inverted", "if $R.$A is not None:\n    $R.$A = torch.zeros(8)", setup="$R.$A = torch.zeros(8)", on="self"
    ),
    _unguarded("refreshed", "$R.$A = $P.clone()\n$R.$A.copy_($P)", twin=_REFRESHED),
    _dropped("new", 'mutant_replace($R, "$A", $P.clone())', on="module"),
    _dropped("computed", 'mutant_replace($R, "$A", torch.cat([$P, $P]))', on="module", twin=""),
    _dropped("parameter", f'mutant_replace($R, "$A", {_CLONED})', on="module"),
    _dropped("own", 'mutant_replace($R, "$N", $P.data.clone())', reads="$P", on="owner"),
    _once("hasattr", 'if not hasattr($R, "$A"):\n    $R.$A = $P.clone()'),
    _once("getattr", 'if getattr($R, "$A", None) is None:\n    $R.$A = $P.clone()'),
    _once("flag", 'if not getattr($R, "${A}_done", False):\n    $R.$A = $P.clone()\n    $R.${A}_done = True'),
    _once("none", "if $R.$A is None:\n    $R.$A = $P.clone()", setup="$R.$A = None", on="self", twin=_NONE_REFRESHED),
    _once("parameter", f'if not hasattr($R, "$A"):\n    $R.$A = {_CLONED}'),
    _once("swapped", 'if hasattr($R, "$A"):\n    pass\nelse:\n    $R.$A = $P.clone()'),
    _once("caught", "try:\n    $R.$A\nexcept AttributeError:\n    $R.$A = $P.clone()"),
    _once("slot", 'if "w" not in $R.$A:\n    $R.$A["w"] = $P.clone()', twin=_SLOT_REFRESHED, **_IN_SLOT),
    _once(
        "counter",
        "if $R.${A}_runs == 0:\n    $R.$A = $P.clone()\n$R.${A}_runs += 1",
        setup="$R.${A}_runs = 0",
        on="self",
    ),
    _again("scaled", "$R.$A.mul_(0.5)"),
    _again("augmented", "$R.$A *= 0.5"),
    _again("data", "$R.$A.data.mul_(0.5)"),
    _again("folded", "$R.$A.mul_($P.max())"),
    _again("divided", "$R.$A.div_(2)"),
    _again("copied", "$R.$A.copy_($R.$A * 0.5)"),
    _again("out", "torch.mul($R.$A, 0.5, out=$R.$A)"),
)
