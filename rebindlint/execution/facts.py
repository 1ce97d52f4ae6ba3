"""What the comparison found of a cell, put down as a fact for rules and fixers."""

from __future__ import annotations

import ast

from rebindlint.execution.cells import Captured
from rebindlint.execution.foreign import MADE, Holder
from rebindlint.execution.interpreter import Interpreter, Site
from rebindlint.execution.naming import names_weight
from rebindlint.execution.places import place_of
from rebindlint.execution.twice import Outcome
from rebindlint.execution.values import (
    ListValue,
    Obj,
    Tensor,
)
from rebindlint.index.hooks import Hook
from rebindlint.index.modules import Module, text_of
from rebindlint.model import Binding, Cell, Frame, Hazard, Rebinding
from rebindlint.model import Value as Origin

__all__ = ["local_fact", "make_fact"]

_FULL_PRECISION = ("torch.float32", "torch.float", "torch.float64", "torch.double")


def _describe(outcome: Outcome, cell: Captured, upto: int | None = None) -> Cell:
    edges = cell.edges if upto is None else cell.edges[: upto + 1]
    path = "".join(edge.text for edge in edges)
    holder = edges[-1].holder
    owner = holder.cls.qualified if isinstance(holder, Obj) and holder.cls is not None else ""
    name, text = str(edges[-1].key), edges[-1].text
    if name.startswith("{"):
        name = text.removeprefix(".")
    return Cell(
        path, name, owner, isinstance(holder, Obj) and holder.is_module, cell.registered if upto is None else False
    )


def make_fact(
    m: Interpreter,
    outcome: Outcome,
    hook: Hook,
    cell: Captured,
    site: Site,
    hazard: Hazard,
    binding: Binding,
    now: Tensor | None,
    *,
    upto: int | None = None,
    lost: bool = False,
    again: bool = False,
    guard: tuple[ast.AST, Module] | None = None,
) -> Rebinding:
    described = _describe(outcome, cell, upto)
    name = str((cell.last if upto is None else cell.edges[upto]).key)
    place, chain = place_of(site.module, site.statement), tuple(Frame(f, row, text) for f, row, text in site.chain)
    if guard is not None and not lost:
        place = place_of(guard[1], guard[0])
        chain = (
            *chain,
            Frame(
                site.module.shown,
                getattr(site.statement, "lineno", 0),
                f"binds `{described.path}` in the first run only",
            ),
        )
    holder = cell.edges[upto].holder if upto is not None else cell.last.holder
    old = site.old if isinstance(site.old, Tensor) else None
    dialect = site.helper
    first = (outcome.first_sites or {}).get((id(cell.last.holder), cell.last.key))
    same_expression = now is not None and (m.term(now) == cell.content)
    return Rebinding(
        hazard=hazard,
        binding=binding,
        cell=described,
        hook=hook.name,
        hook_place=place_of(hook.function.module, hook.function.node),
        statement=place,
        value=_origin(now, m),
        protocols=frozenset({outcome.protocol}),
        chain=chain,
        function=site.function,
        module=site.module.name,
        value_is_parameter=isinstance(site.value, Tensor) and site.value.is_parameter,
        weight_dependent=bool(cell.epochs),
        prefer_copy_passed=site.prefer_copy,
        source_lost=lost,
        retransformed=again,
        certain=_is_certain(m, site, holder, name)
        and not (hazard is Hazard.ADDRESS and _is_cast(now))
        and not _is_guess(site, cell),
        guarded=place_of(guard[1], guard[0]) if guard is not None else None,
        receiver_is_module=isinstance(holder, Obj) and holder.is_module,
        existed_before=(isinstance(holder, Obj) and name in holder.initial)
        or (first is not None and _old(first) is not None),
        may_alias=_may_alias(site, old, cell) or (first is not None and _may_alias(first, _old(first), None)),
        changes_strides=_changes_strides(site, old) or (first is not None and _changes_strides(first, _old(first))),
        same_layout=same_expression and now is not None and now.dtype == cell.dtype,
        zeroed=cell.storage.zeroed,
        helper=dialect,
    )


def _is_certain(m: Interpreter, site: Site, holder: object, name: str) -> bool:
    """Whether the bound value is known to be a tensor (or several): by what made it, or by the attribute's annotation."""
    values = site.value.items if isinstance(site.value, ListValue) else [site.value]
    if all(not isinstance(value, Tensor) or value.certain or value.storage.reordered for value in values):
        return True
    if not isinstance(holder, Obj) or holder.cls is None:
        return False
    for cls in m.index.mro(holder.cls):
        annotations = [cls.annotations.get(name), *(write.annotation for write in cls.writes.get(name, ()))]
        if any(annotation is not None and "Tensor" in text_of(annotation) for annotation in annotations):
            return True
    return False


def _is_guess(site: Site, cell: Captured) -> bool:
    """Whether only a constructor outside the tree knows if there is such a tensor: it may make one, or is given what may be one."""
    if not any(isinstance(edge.holder, Holder) for edge in cell.edges):
        return False
    if cell.last.key == MADE:
        return isinstance(site.value, Holder)
    return not (cell.tensor.certain or cell.storage.reordered or names_weight(str(cell.last.key)))


def _is_cast(now: Tensor | None) -> bool:
    """The result of a cast, bound as it is: it may be the very tensor that was cast, into which a reload writes. Models are served in
    fewer than 32 bits, so what is cast to these is another tensor.
    """
    return now is not None and now.storage.cast and not now.path and now.dtype not in _FULL_PRECISION


def _old(site: Site) -> Tensor | None:
    return site.old if isinstance(site.old, Tensor) else None


def _may_alias(site: Site, old: Tensor | None, cell: Captured | None) -> bool:
    value = site.value
    if not isinstance(value, Tensor):
        return False
    return (cell is not None and value.storage is cell.storage) or (old is not None and value.storage is old.storage)


def _changes_strides(site: Site, old: Tensor | None) -> bool:
    value = site.value
    if not isinstance(value, Tensor):
        return False
    strided = (value.strided, old.strided) if old is not None else (value.strided,)
    return any(strided) and not (old is not None and all(strided) and old.path == value.path)


def _origin(now: Tensor | None, m: Interpreter) -> Origin:
    if now is None:
        return Origin.ABSENT
    if not now.certain:
        return Origin.UNKNOWN
    return Origin.FRESH if now.storage.born == m.run else Origin.VIEW


def local_fact(
    m: Interpreter, outcome: Outcome, hook: Hook, site: Site, *, overlapping: bool = False, unsupported: bool = False
) -> Rebinding:
    """A fact about one statement, whatever becomes of its cell."""
    target = site.old if isinstance(site.old, Tensor) else None
    path = target.home if target is not None and target.home else _target_text(site.statement)
    return Rebinding(
        hazard=Hazard.FRESHNESS,
        binding=Binding.COPY if overlapping else Binding.REPLACE,
        cell=Cell(path, path.rsplit(".", 1)[-1]),
        hook=hook.name,
        hook_place=place_of(hook.function.module, hook.function.node),
        statement=place_of(site.module, site.statement),
        value=Origin.VIEW if overlapping else Origin.UNKNOWN,
        protocols=frozenset({outcome.protocol}),
        chain=tuple(Frame(f, row, text) for f, row, text in site.chain),
        function=site.function,
        module=site.module.name,
        overlapping=overlapping,
        prefer_copy_unsupported=unsupported,
        prefer_copy_passed=unsupported,
        may_alias=overlapping,
        helper=site.helper,
    )


def _target_text(statement: ast.AST) -> str:
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and len(node.args) > 1:
            args = [a for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            if args and node.args and isinstance(node.args[0], (ast.Name, ast.Attribute)):
                return f"{ast.unparse(node.args[0])}.{args[0].value!s}"
            if isinstance(node.func, ast.Attribute):
                return ast.unparse(node.func.value)
    return ""
