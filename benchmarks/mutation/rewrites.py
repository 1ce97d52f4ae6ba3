"""Writes and guards that a clean hook has, turned into hazards: bind instead of copy, drop the copy, the guard, the refresh."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from benchmarks.mutation.mutants import Mutant
from benchmarks.mutation.plan import Plan
from benchmarks.mutation.reach import Reached, callee, sure_statements
from benchmarks.mutation.splice import statements
from benchmarks.mutation.subjects import Subject, is_released
from rebindlint.index import Index
from rebindlint.index.classes import FunctionInfo

__all__ = ["rewritten"]

_MODULE = cst.Module([])
_REBOUND = frozenset({"RB101", "RB102", "RB103", "RB104", "RB105", "RB201"})
_STALE = frozenset({"RB204", "RB203", "RB205"})
_KEEPS_VALUES = re.compile(
    r"^(Parameter|contiguous|to|view|reshape|detach|clone|squeeze|unsqueeze|requires_grad_|float|max|cast|type)$"
)


@dataclass(frozen=True, slots=True)
class _Rewrite:
    """``code`` takes the place of a statement; ``cells`` empty: whatever the statement writes."""

    kind: str
    variant: str
    code: str
    codes: frozenset[str]
    cells: frozenset[str]


def rewritten(index: Index, subject: Subject, reached: list[Reached], seed: int, limit: int) -> Iterator[Mutant]:
    """At most ``limit`` mutants of the hook's own writes, each statement once."""
    sites = []
    for at in reached:
        for number, (block, position, statement) in enumerate(sure_statements(at)):
            options = list(_rewrites(index, at, statement))
            if options:
                sites.append((at, block, position, number, options))
    chance = random.Random(f"{seed} {subject.name} rewrites")
    chance.shuffle(sites)
    for at, block, position, number, options in sites[:limit]:
        rewrite = chance.choice(options)
        plan = Plan(index)
        plan.replace(at.cut, block, position, statements(rewrite.code))
        for target in subject.objects:
            for cell in sorted(rewrite.cells):
                if cell.isidentifier():
                    plan.begin(target.reader, f"mutant_read = getattr({target.name}, {cell!r}, None)")
        where = f"{at.name}:{number}"
        yield Mutant(
            subject, rewrite.kind, rewrite.variant, at.place, where, plan.texts(), rewrite.cells, rewrite.codes, True
        )


def _rewrites(index: Index, at: Reached, statement: cst.BaseStatement) -> Iterator[_Rewrite]:
    if isinstance(statement, cst.If):
        yield from _of_guard(statement)
    elif m.matches(statement, m.SimpleStatementLine(body=[m.Expr(value=m.Call())])):
        line = cst.ensure_type(statement, cst.SimpleStatementLine)
        call = cst.ensure_type(cst.ensure_type(line.body[0], cst.Expr).value, cst.Call)
        if m.matches(call.func, m.Attribute(attr=m.Name("copy_"))) and len(call.args) >= 1:
            yield from _of_copy(at, call)
        elif len(call.args) >= 3:
            target = callee(index, at, call)
            if isinstance(target, FunctionInfo) and target.name == "replace_parameter":
                yield from _of_replacement(at, call)


def _of_copy(at: Reached, call: cst.Call) -> Iterator[_Rewrite]:
    """``o.x.copy_(v)``"""
    assert isinstance(call.func, cst.Attribute)
    target = call.func.value
    if m.matches(target, m.Attribute(attr=m.Name("data"))):
        assert isinstance(target, cst.Attribute)
        target = target.value
    if isinstance(target, cst.Attribute) and _roots(target) & set(at.names.values()):
        name, value = _code(target), _code(call.args[0].value)
        if not is_released(at.cut.tree.code, target.attr.value):
            cells = frozenset({target.attr.value})
            yield _Rewrite("bind-not-copy", "copy-dropped", f"{name}.data = ({value}).clone()", _REBOUND, cells)


def _roots(node: cst.CSTNode) -> set[str]:
    return {n.value for n in m.findall(node, m.Name()) if isinstance(n, cst.Name)}


def _of_replacement(at: Reached, call: cst.Call) -> Iterator[_Rewrite]:
    """``replace_parameter(o, "x", v)``"""
    owner, name, value = (_code(argument.value) for argument in call.args[:3])
    literal = re.fullmatch(r"[\"'](\w+)[\"']", name)
    if any(a.star for a in call.args) or owner not in at.names.values() or value == "None":
        return
    if literal is not None and is_released(at.cut.tree.code, literal.group(1)):
        return
    cells = frozenset({literal.group(1)}) if literal is not None else frozenset()
    parameter = f"torch.nn.Parameter(({value}).clone(), requires_grad=False)"

    def bound(variant: str, code: str) -> _Rewrite:
        return _Rewrite("bind-not-copy", variant, code, _REBOUND, cells)

    yield bound("replaced-setattr", f"setattr({owner}, {name}, {parameter})")
    yield bound("replaced-registered", f"{owner}.register_parameter({name}, {parameter})")
    yield bound("replaced-slot", f"{owner}._parameters[{name}] = {parameter}")
    yield bound("replaced-data", f"getattr({owner}, {name}).data = ({value}).clone()")
    if literal is not None:
        yield bound("replaced-attribute", f"{owner}.{literal.group(1)} = {parameter}")
        own = f"{owner}.{literal.group(1)}"
        yield bound("replaced-by-parts", f"mutant_kept = {parameter}\ndel {own}\n{own} = mutant_kept")
    if any(a.keyword is not None and a.keyword.value == "prefer_copy" for a in call.args):
        yield _Rewrite(
            "drop-prefer-copy", "argument", f"{_code(call.func)}({owner}, {name}, ({value}).clone())", _REBOUND, cells
        )
    if _transforms(at, call.args[2].value):
        flag = "mutant_done"
        code = f"if not getattr({owner}, {flag!r}, False):\n    {_flat(call)}\n    {owner}.{flag} = True"
        yield _Rewrite("drop-refresh", "transform-once", code, _STALE, cells)


def _transforms(at: Reached, value: cst.BaseExpression) -> bool:
    """Whether the value is computed: it is a call that changes values, or a local name that was bound once, to such a call."""
    if isinstance(value, cst.Name):
        pattern = m.Assign(targets=[m.AssignTarget(target=m.Name(value.value))])
        bound = [n for n in m.findall(at.cut.node, pattern) if isinstance(n, cst.Assign)]
        return len(bound) == 1 and not isinstance(bound[0].value, cst.Name) and _transforms(at, bound[0].value)
    calls = [n for n in m.findall(value, m.Call()) if isinstance(n, cst.Call)]
    names = [_code(c.func).rpartition(".")[2] for c in calls]
    return any(not _KEEPS_VALUES.match(name) for name in names)


def _of_guard(statement: cst.If) -> Iterator[_Rewrite]:
    """``if o.x is None: o.x = new … else: o.x.copy_(…)``, or ``if not hasattr(o, "x")``"""
    test, body = _code(statement.test), _block(statement.body)
    for owner, name in _guarded(test):
        if re.search(rf"(?<![\w.]){owner}\.{name}\s*(?::[^=\n]+)?=[^=\n]*\(", body):
            cells = frozenset({name})
            yield _Rewrite("remove-guard", "always", body, _REBOUND, cells)
            if statement.orelse is not None and isinstance(statement.orelse, cst.Else):
                yield _Rewrite(
                    "drop-refresh", "else-dropped", f"if {_flat(statement.test)}:\n{_margin(body)}", _STALE, cells
                )


_GUARDS = (
    re.compile(r"not hasattr\((\w+), [\"'](\w+)[\"']\)"),
    re.compile(r"(?<![\w.])(\w+)\.(\w+) is None"),
    re.compile(r"getattr\((\w+), [\"'](\w+)[\"'], None\) is None"),
)


def _guarded(test: str) -> list[tuple[str, str]]:
    return [(found.group(1), found.group(2)) for pattern in _GUARDS for found in pattern.finditer(test)]


def _block(body: cst.BaseSuite) -> str:
    assert isinstance(body, cst.IndentedBlock)
    return "".join(_MODULE.code_for_node(s) for s in body.body).strip("\n")


def _margin(code: str) -> str:
    return "\n".join(f"    {line}" for line in code.split("\n"))


def _code(node: cst.CSTNode) -> str:
    return _MODULE.code_for_node(node).strip()


def _flat(node: cst.CSTNode) -> str:
    """On one line, so that a mark can stand behind it."""
    return re.sub(r"\s*\n\s*", " ", _code(node))
