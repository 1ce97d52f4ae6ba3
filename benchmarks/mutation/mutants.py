"""Mutants: which operator at which place of which hook, and the texts of the files that this comes to."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from string import Template

from benchmarks.mutation.operators import OPERATORS, Operator, filled
from benchmarks.mutation.plan import Plan
from benchmarks.mutation.positions import Position
from benchmarks.mutation.reach import Reached
from benchmarks.mutation.splice import MARK
from benchmarks.mutation.subjects import Object, Subject
from benchmarks.mutation.vehicles import HOLDERS, VEHICLES, Vehicle
from rebindlint.index import Index

__all__ = ["CELL", "Mutant", "Option", "built", "injected", "options"]

CELL = "mutant_cell"


@dataclass(frozen=True, slots=True, eq=False)
class Mutant:
    """``texts`` by module; ``cells`` are names one of which a finding has to be about, under one of ``codes``.

    ``known``: the cell was there before. A later statement of the hook may then be the one that binds it in the end (as
    ``o.x = Parameter(o.x.data)`` does after ``o.x.data = new``), so the finding may stand anywhere in the hook's code. An
    object that the hook makes is reported where it is bound.
    """

    subject: Subject
    kind: str
    variant: str
    place: str
    where: str
    texts: dict[str, str]
    cells: frozenset[str]
    codes: frozenset[str]
    known: bool = False

    @property
    def id(self) -> str:
        return f"{self.subject.name} {self.kind}.{self.variant} {self.place} {self.where}"


# ---- which mutants


def injected(
    index: Index, subject: Subject, reached: list[Reached], seed: int, quota: dict[str, int]
) -> Iterator[tuple[Mutant, Mutant | None]]:
    """Mutants of one hook with a new cell each, with their twins. The choice depends on nothing but hook and seed."""
    for place, number in quota.items():
        chance = random.Random(f"{seed} {subject.name} {place}")
        every = list(options(index, subject, reached, place))
        chance.shuffle(every)
        for option in every[:number]:
            yield built(index, subject, option)


@dataclass(frozen=True, slots=True)
class Option:
    """What is injected (an operator, or an object of ``holder``), by which vehicle, for which object, and where."""

    place: str
    operator: Operator | None
    vehicle: Vehicle | None
    holder: str
    target: Object
    at: Reached
    position: Position


def options(index: Index, subject: Subject, reached: list[Reached], place: str) -> Iterator[Option]:
    hook = reached[0]
    if place == "constructor":
        for target in subject.objects:
            for holder in HOLDERS:
                yield from (Option(place, None, None, holder, target, hook, p) for p in hook.positions[:2])
        yield from _made_objects(subject, reached)
        return
    vehicles: list[Vehicle | None] = (
        [v for v in VEHICLES if v.place == place] if place in ("helper", "callback") else []
    )
    for target in subject.objects:
        for operator in OPERATORS:
            if not _fits(index, subject, operator, target):
                continue
            for at in reached:
                if at.place == place and target.name in at.names and _has_weight(subject, operator, at):
                    yield from (Option(place, operator, None, "", target, at, p) for p in at.positions)
            if operator.on != "owner":
                yield from (Option(place, operator, v, "", target, hook, hook.positions[0]) for v in vehicles)


def _made_objects(subject: Subject, reached: list[Reached]) -> Iterator[Option]:
    """Constructors of the tree that the hook comes by; many times over, so that some are chosen."""
    for at in reached:
        target = next((o for o in subject.objects if at.holder.partition(".")[0] == o.name), None)
        if at.place == "constructor" and target is not None:
            for operator in OPERATORS:
                if operator.kind == "fresh-workspace" and operator.on == "any" and not operator.needs_weight:
                    yield from (Option(at.place, operator, None, "", target, at, p) for p in at.positions)


def _has_weight(subject: Subject, operator: Operator, at: Reached) -> bool:
    return not operator.needs_weight or subject.weight.partition(".")[0] in at.names


def _fits(index: Index, subject: Subject, operator: Operator, target: Object) -> bool:
    if operator.needs_weight and not subject.weight:
        return False
    if operator.helpers and index.dialect_for(subject.hook.function.module.name).kind not in operator.helpers:
        return False
    if operator.on == "module":
        return target.is_module
    if operator.on == "self":
        return target.name == subject.hook.function.self_name and subject.constructor is not None
    if operator.on == "owner":
        return target.name == subject.weight.partition(".")[0]
    return True


def built(index: Index, subject: Subject, option: Option) -> tuple[Mutant, Mutant | None]:
    """The mutant, and the same without the hazard where there is such a thing."""
    build = _held if option.holder else _carried if option.vehicle is not None else _direct
    hazard = build(index, subject, option, False)
    assert hazard is not None
    return hazard, build(index, subject, option, True)


def _direct(index: Index, subject: Subject, option: Option, twin: bool) -> Mutant | None:
    operator, at = option.operator, option.at
    assert operator is not None
    template = operator.twin if twin else operator.hazard
    if twin and option.place == "constructor":
        return None  # the object is made anew whatever its constructor does
    if not template:
        return None
    plan = Plan(index)
    weight = _renamed(subject.weight, at)
    made = option.place == "constructor"
    holes = {
        "R": at.cut.function.self_name if made else at.names[option.target.name],
        "A": CELL,
        "P": weight,
        "N": weight.rpartition(".")[2],
    }
    position = option.position
    plan.insert(at.cut, position, filled(template, **holes, **_helper(index, subject)))
    if made:
        reads = filled(operator.reads, R=at.holder, A=CELL, P="")
        _read(plan, subject, option.target, reads)
        where = f"{at.holder}@{at.name}:{position.name}"
        cells, kind, variant = frozenset({CELL, f"{CELL}_again"}), "rebuild-holder", f"tree-{operator.variant}"
        return Mutant(
            subject, kind, variant, option.place, where, plan.texts(), cells | _attributes(at.holder), _HELD, True
        )
    _surroundings(plan, subject, operator, option.target)
    where = f"{option.target.name}@{at.name}:{position.name}"
    return _mutant(plan, subject, operator.kind, operator.variant, option.place, where, operator)


def _attributes(path: str) -> frozenset[str]:
    """A rebuilt object is reported as the outermost one that was built anew."""
    return frozenset(path.split(".")[1:])


def _helper(index: Index, subject: Subject) -> dict[str, str]:
    dialect = index.dialect_for(subject.hook.function.module.name)
    return {"M": dialect.module, "F": dialect.function}


def _renamed(weight: str, at: Reached) -> str:
    owner, _, name = weight.partition(".")
    return f"{at.names[owner]}.{name}" if owner in at.names else weight


def _surroundings(plan: Plan, subject: Subject, operator: Operator, target: Object) -> None:
    if operator.setup:
        assert subject.constructor is not None
        own = subject.constructor.function.self_name
        plan.finish(subject.constructor, filled(operator.setup, R=own, A=CELL))
    _read(plan, subject, target, operator.reads)


def _read(plan: Plan, subject: Subject, target: Object, reads: str) -> None:
    """Run-time code uses the cell, so that a graph holds it."""
    name = target.name
    holes = {"R": name, "A": CELL, "P": subject.weight}
    plan.begin(target.reader, f"mutant_read = {filled(reads, **holes)} * 1")


def _carried(index: Index, subject: Subject, option: Option, twin: bool) -> Mutant | None:
    operator, vehicle = option.operator, option.vehicle
    assert operator is not None
    assert vehicle is not None
    template = operator.twin if twin else operator.hazard
    if not template:
        return None
    plan = Plan(index)
    inner = _marked(filled(template, R="target", A=CELL, P="weight", N="", **_helper(index, subject)))
    weight = subject.weight if operator.needs_weight else "None"
    holes = {"R": option.target.name, "W": weight}
    own = subject.hook.function.self_name
    call = _indented(vehicle.call, inner).replace("self.", f"{own}.")
    plan.insert(option.at.cut, option.position, Template(call).safe_substitute(holes))
    if vehicle.method:
        plan.behind(subject.cut, _indented(vehicle.method, inner))
    if vehicle.module:
        plan.append(subject.hook.function.module.name, _indented(vehicle.module, inner))
    _surroundings(plan, subject, operator, option.target)
    where = f"{option.target.name}@new:{vehicle.name}"
    return _mutant(plan, subject, operator.kind, operator.variant, option.place, where, operator)


def _marked(code: str) -> str:
    return "\n".join(f"{line}  {MARK}" for line in code.split("\n"))


def _indented(template: str, code: str) -> str:
    """``$S`` stands in a line of its own, and gives its margin to every line that takes its place."""
    lines: list[str] = []
    for line in template.split("\n"):
        margin = line[: len(line) - len(line.lstrip())]
        lines.extend(f"{margin}{inner}" for inner in code.split("\n")) if line.strip() == "$S" else lines.append(line)
    return "\n".join(lines)


_HELD = frozenset({"RB201", "RB101", "RB105"})


def _held(index: Index, subject: Subject, option: Option, twin: bool) -> Mutant | None:
    call, module, reads = HOLDERS[option.holder]
    plan = Plan(index)
    tensor = "{}.clone()" if subject.weight else "torch.zeros(8)"
    holes = {"R": option.target.name, "A": CELL, "W": subject.weight or "None", "X": tensor.format(subject.weight)}
    code = Template(call).safe_substitute(holes)
    if twin:
        if subject.weight or "zeros" in module:
            return None  # a holder built once would have to be refreshed, each kind in its own way
        code = f'if not hasattr({option.target.name}, "{CELL}"):\n' + _indented("    $S", code)
    plan.insert(option.at.cut, option.position, code)
    if module:
        plan.append(subject.hook.function.module.name, module.replace("$V", tensor.format("weight") + f"  {MARK}"))
    _read(plan, subject, option.target, reads)
    where = f"{option.target.name}@{option.at.name}:{option.position.name}"
    return Mutant(
        subject, "rebuild-holder", option.holder, option.place, where, plan.texts(), frozenset({CELL, "inner"}), _HELD
    )


def _mutant(
    plan: Plan, subject: Subject, kind: str, variant: str, place: str, where: str, operator: Operator
) -> Mutant:
    cells = {CELL, f"{CELL}_again", f"{CELL}_up", f"{CELL}_down"}
    if operator.on == "owner":
        cells = {subject.weight.rpartition(".")[2]}
    return Mutant(
        subject, kind, variant, place, where, plan.texts(), frozenset(cells), operator.codes, operator.on == "owner"
    )
