"""The check: cells at capture against cells after the second run, turned into facts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from rebindlint.execution.cells import Captured, Edge, owned_storages
from rebindlint.execution.containers import is_key_by_shape
from rebindlint.execution.facts import local_fact, make_fact
from rebindlint.execution.foreign import Holder
from rebindlint.execution.graphs import captured_anew
from rebindlint.execution.guards import asks_flag, guard_of
from rebindlint.execution.interpreter import Interpreter, Site
from rebindlint.execution.naming import names_weight
from rebindlint.execution.places import place_of
from rebindlint.execution.sizes import resized
from rebindlint.execution.twice import Outcome, shared_roots
from rebindlint.execution.values import (
    DELETED,
    FIRST,
    LOST,
    SECOND,
    Const,
    DictValue,
    ListValue,
    Obj,
    Scalar,
    Tensor,
    Unknown,
    Value,
)
from rebindlint.index.hooks import LAYER_NAMES, Hook
from rebindlint.index.readers import Readers
from rebindlint.model import Binding, Cell, Frame, Hazard, Protocol, Rebinding
from rebindlint.model import Value as Origin

__all__ = ["compare", "current", "nearest"]

_NUMBER = re.compile(r"\b(?:item|float|int)\(\d+\)")


def compare(outcome: Outcome, hook: Hook, readers: Readers) -> Iterator[Rebinding]:
    """The facts of one completed execution."""
    m = outcome.interpreter
    for site in m.overlaps if not hook.lazy else ():
        yield local_fact(m, outcome, hook, site, overlapping=True)
    for site in m.rejected if not hook.lazy else ():
        yield local_fact(m, outcome, hook, site, unsupported=True)
    if not outcome.completed:
        return
    yield from _baked(m, outcome, hook, readers)
    owned = owned_storages(m, [*outcome.roots, *shared_roots(m)])
    safe = {cell.storage.number: _is_fresh(cell.storage.epochs, cell.epochs) for cell in outcome.captured or []}
    done: set[tuple[int, object, int]] = set()
    for cell in outcome.captured or []:
        own = cell.edges[_own_position(cell)]
        key = (id(own.holder), own.key, cell.storage.number)
        if key in done or cell.storage.on_host or cell.storage.empty or not _is_read(cell.edges, hook, readers):
            continue
        stays = cell.storage.number in owned and safe[cell.storage.number]
        found = list(_of_cell(m, outcome, hook, cell, stays=stays))
        if found and not _is_read_of_root(m, cell, outcome, hook, readers):
            continue
        done.add(key)
        yield from found


def _of_cell(m: Interpreter, outcome: Outcome, hook: Hook, cell: Captured, *, stays: bool) -> Iterator[Rebinding]:
    """What became of one cell; ``stays``: the memory that it showed is alive and refreshed."""
    again = m.retransformed.get(cell.storage.number)
    if again is not None and _shows(cell) and not hook.lazy:
        yield make_fact(m, outcome, hook, cell, again, Hazard.FRESHNESS, Binding.COPY, cell.tensor, again=True)
        return
    if cell.storage.epochs & LOST and _shows(cell) and not cell.storage.scratch:
        yield from _lost(m, outcome, hook, cell)
        return
    raw = _left_raw(m, outcome, hook, cell) if _shows(cell) and not hook.lazy else None
    if raw is not None:
        if not _has_no_room(m, outcome, cell):
            yield raw
        return
    if stays:
        return  # a graph that holds it is right, whatever the cell shows now
    fact = _fact(m, outcome, hook, cell)
    if fact is not None and not hook.lazy:
        yield from _moved_earlier(m, outcome, hook, cell)
    by_key = _is_kept_by_number(cell) if hook.lazy else _is_kept_by_shape(cell)
    if fact is not None and fact.hazard is Hazard.FRESHNESS and by_key:
        return
    if fact is not None and fact.hazard is Hazard.ADDRESS and _stays_elsewhere(outcome, cell):
        fact = replace(fact, shared=True)
    if fact is not None and (not hook.lazy or _is_lazy_cache(m, outcome, hook, cell, fact)):
        doubtful = hook.lazy and _may_be_nothing(m, outcome, cell)
        yield replace(fact, lazy=hook.lazy, certain=fact.certain and not doubtful)


def _lost(m: Interpreter, outcome: Outcome, hook: Hook, cell: Captured) -> Iterator[Rebinding]:
    """What sleeping discarded and nothing wrote again."""
    site = (
        nearest(outcome.first_sites or {}, cell)
        or (outcome.first_moved or {}).get(id(cell.tensor))
        or m.origins.get(cell.storage.number)
    )
    if site is not None:
        yield replace(
            make_fact(m, outcome, hook, cell, site, Hazard.FRESHNESS, Binding.NONE, cell.tensor),
            lost=True,
            certain=True,
        )


def _is_kept_by_shape(cell: Captured) -> bool:
    """A slot of a table whose key is a shape: every layer of that shape shares it, so no weight's values can be in it."""
    return any(isinstance(edge.holder, DictValue) and is_key_by_shape(edge.key) for edge in cell.edges)


def _is_kept_by_number(cell: Captured) -> bool:
    """A slot of a table whose key is a number that was read from a weight: another number has another slot."""
    return any(_NUMBER.search(str(edge.key)) for edge in cell.edges)


def _stays_elsewhere(outcome: Outcome, cell: Captured) -> bool:
    """The very parameter is registered under another name too, which still shows the captured memory."""
    if not (cell.registered and cell.tensor.is_parameter):
        return False
    first = (outcome.first_sites or {}).get((id(cell.last.holder), cell.last.key))
    before = first.old if first is not None and isinstance(first.old, Tensor) else None
    if before is not None and before.storage is not cell.storage and before.is_parameter:
        return any(  # the first run has parted them already
            other.registered and other.storage is before.storage and other.tensor.is_parameter
            for other in outcome.captured or []
        )
    for other in outcome.captured or []:
        if (
            other.tensor is cell.tensor
            and other.registered
            and (other.last.holder, other.last.key)
            != (
                cell.last.holder,
                cell.last.key,
            )
        ):
            now = current(other.last)
            if isinstance(now, Tensor) and now.storage is cell.storage:
                return True
    return False


def _baked(m: Interpreter, outcome: Outcome, hook: Hook, readers: Readers) -> Iterator[Rebinding]:
    """Host numbers that the hook read from weights and keeps where run-time code reads them: a graph has them by value."""
    for edges, number in outcome.numbers:
        last = edges[-1]
        site = (outcome.first_sites or {}).get((id(last.holder), last.key))
        if site is None or not _is_read(edges, hook, readers):
            continue
        if hook.lazy and not _is_kept_number(m, outcome, last, number, site):
            continue
        holder = last.holder
        owner = holder.cls.qualified if isinstance(holder, Obj) and holder.cls is not None else ""
        is_module = isinstance(holder, Obj) and holder.is_module
        yield Rebinding(
            hazard=Hazard.FRESHNESS,
            binding=Binding.SCALAR,
            cell=Cell("".join(edge.text for edge in edges), str(last.key), owner, is_module),
            hook=hook.name,
            hook_place=place_of(hook.function.module, hook.function.node),
            statement=place_of(site.module, site.statement),
            value=Origin.ABSENT,
            protocols=frozenset({outcome.protocol}),
            chain=tuple(Frame(f, row, text) for f, row, text in site.chain),
            function=site.function,
            module=site.module.name,
            weight_dependent=True,
            receiver_is_module=is_module,
            lazy=hook.lazy,
        )


def _may_be_nothing(m: Interpreter, outcome: Outcome, cell: Captured) -> bool:
    """Whether a reload may have nothing to do with it: a cast may give the weight itself, and what run-time code is given, whatever
    it is called, may be no weight.
    """
    return cell.storage.cast or not _of_weights(m, outcome, cell.storage.sources, given=False)


def _is_lazy_cache(m: Interpreter, outcome: Outcome, hook: Hook, cell: Captured, fact: Rebinding) -> bool:
    """What run-time code derived from a weight, behind a guard; other state of the engine is none of a reload's affair."""
    if fact.hazard is Hazard.ADDRESS:
        built = any(edge.key in hook.dropped for edge in cell.edges[1:])
    else:
        built = fact.hazard is Hazard.FRESHNESS and not fact.source_lost
        built = built and _is_guarded(m, outcome, nearest(outcome.first_sites or {}, cell))
    return built and _of_weights(m, outcome, cell.storage.sources)


def _is_kept_number(m: Interpreter, outcome: Outcome, last: Edge, number: Scalar, site: Site) -> bool:
    """Whether run-time code still has the number that it read from the first weights."""
    now = current(last)
    stale = isinstance(now, Scalar) and bool(now.epochs & FIRST)
    return stale and _is_guarded(m, outcome, site) and _of_weights(m, outcome, number.sources)


def _is_guarded(m: Interpreter, outcome: Outcome, site: Site | None) -> bool:
    """Whether it was built because there was nothing yet. A comparison tells whether what was kept still fits."""
    guard = guard_of(m, outcome, site)
    compared = (ast.Eq, ast.NotEq, ast.Lt, ast.Gt, ast.LtE, ast.GtE)
    return guard is not None and not any(isinstance(node, compared) for node in ast.walk(guard[0]))


def _of_weights(m: Interpreter, outcome: Outcome, sources: frozenset[int], *, given: bool = True) -> bool:
    """Whether one of the storages is a weight's, by its name; ``given``: also one that run-time code was given."""
    weights = [*m.weights, *(other.storage for other in outcome.captured or [] if other.registered)]
    labels = {weight.weight for weight in weights if weight.number in sources}
    return any(
        names_weight(label.removeprefix("argument ").rpartition(".")[2])
        for label in labels
        if given or not label.startswith("argument ") or "." in label
    )


def _shows(cell: Captured) -> bool:
    now = current(cell.last)
    return isinstance(now, Tensor) and now.storage is cell.storage


def _is_fresh(now: int, captured: int) -> bool:
    """Contents that derived from weights at capture must derive from the second load alone."""
    return not captured or (bool(now & SECOND) and not now & FIRST) or now == 0


def _is_read_of_root(m: Interpreter, cell: Captured, outcome: Outcome, hook: Hook, readers: Readers) -> bool:
    """Whether run-time code reads what the hook left on its own object, or on its method's layer; other cells are read for all
    that this tells.
    """
    if hook.receiver is None or len(cell.edges) != 2 or _is_held_by_another(cell, outcome):
        return True
    name, root = str(cell.last.key), cell.edges[0].text
    if root == "self" and name.isidentifier():
        return readers.is_read_of_self(name, hook.receiver)
    if root not in LAYER_NAMES:
        return True
    site = nearest(m.sites, cell) or nearest(outcome.first_sites or {}, cell)
    return readers.is_read_of_layer(name, hook, site.statement if site is not None else hook.function.node)


def _is_held_by_another(cell: Captured, outcome: Outcome) -> bool:
    """Whether another object holds the same memory: what reads it there is said to have it from here."""
    return any(
        other.storage is cell.storage and other.last.holder is not cell.last.holder for other in outcome.captured or []
    )


def _is_read(edges: tuple[Edge, ...], hook: Hook, readers: Readers) -> bool:
    """Run-time code reads every attribute on the way to the cell. Roots and slots are read with their holder, and so is what an
    object of a class outside the tree has: code outside the tree reads it.
    """
    home = hook.function.module.shown
    return all(
        readers.is_visible(edge.key, home)
        for edge in edges[1:]
        if isinstance(edge.key, str) and isinstance(edge.holder, Obj) and edge.text.startswith(".")
        if not isinstance(edge.holder, Holder)
    )


def _own_position(cell: Captured) -> int:
    """Where on the way to the cell the last edge is that the tree's own code made."""
    inside = (i - 1 for i, edge in enumerate(cell.edges) if i > 1 and isinstance(edge.holder, Holder))
    return next(inside, len(cell.edges) - 1)


def current(edge: Edge) -> Value | None:
    """What the holder has under the key now; None when it has nothing there."""
    holder = edge.holder
    if isinstance(holder, Obj):
        return holder.attributes.get(str(edge.key))
    items = getattr(holder, "items", None)
    if isinstance(items, list) and isinstance(edge.key, int):
        return items[edge.key] if edge.key < len(items) else None
    if isinstance(items, dict):
        return items.get(edge.key)
    variables = getattr(holder, "variables", None)
    return variables.get(edge.key) if isinstance(variables, dict) else None


def _fact(m: Interpreter, outcome: Outcome, hook: Hook, cell: Captured) -> Rebinding | None:
    """Which hazard the cell shows: the first edge on its path that leads elsewhere now decides."""
    for position in range(1, len(cell.edges) - 1):
        now = current(cell.edges[position])
        if now is not cell.edges[position + 1].holder:
            return _holder_rebuilt(m, outcome, hook, cell, position)
    edge = cell.last
    now = current(edge)
    site = nearest(m.sites, cell)
    if now is DELETED or now is None or (isinstance(now, Const) and now.value is None):
        return (
            make_fact(m, outcome, hook, cell, site, Hazard.LIFETIME, Binding.RELEASE, None)
            if site is not None
            else None
        )
    if isinstance(now, Unknown) and now.tensor is not None:
        now = now.tensor
    if not isinstance(now, Tensor):
        return None
    if now.storage is cell.storage:
        return _stale(m, outcome, hook, cell)
    moved = m.moved.get(id(now))
    if moved is not None and (now is cell.tensor or _showed(moved.old, cell)):
        site = moved  # the parameter around it may be another one, but not before this did it show other memory
    return make_fact(m, outcome, hook, cell, site, Hazard.ADDRESS, site.binding, now) if site is not None else None


def _showed(value: Value | None, cell: Captured) -> bool:
    return isinstance(value, Tensor) and value.storage is cell.storage


def _moved_earlier(m: Interpreter, outcome: Outcome, hook: Hook, cell: Captured) -> Iterator[Rebinding]:
    """Moves of the captured parameter to new memory before it was moved again or another one took its place.

    To refresh in place what the last statement binds is not enough where they stay. Moves one after another in one function
    are seen together: there the last one stands for all.
    """
    number, now, oracle = id(cell.tensor), current(cell.last), m.oracle
    last = m.moved.get(number)
    if last is None or not isinstance(now, Tensor):
        return
    there = (last.module, last.function)
    sites = [site for site in m.moved_earlier.get(number, ()) if (site.module, site.function) != there]
    if now is not cell.tensor:
        sites.append(last)
    for site in sites:
        value = site.value
        if site.binding is not Binding.DATA or not isinstance(value, Tensor) or value.storage.born != m.run:
            continue
        if not (value.certain or value.storage.reordered):
            continue
        # what the first run left may need it no more where something decides it, as padded sizes do
        if all(key in oracle.fixed for key, _ in oracle.asked[outcome.asked : site.asked]):
            yield make_fact(m, outcome, hook, cell, site, Hazard.ADDRESS, site.binding, value)


def nearest(sites: dict[tuple[int, object], Site], cell: Captured, upto: int | None = None) -> Site | None:
    """The statement that bound the cell, or the innermost list, tuple or dictionary around it that was bound as a whole, or the
    object from outside the tree that was made from it.
    """
    edges = cell.edges[1:] if upto is None else cell.edges[1 : upto + 1]
    for edge in reversed(edges):
        found = sites.get((id(edge.holder), edge.key))
        if found is not None:
            return found
        if isinstance(edge.holder, Obj) and not isinstance(edge.holder, Holder):
            return None
    return None


def _holder_rebuilt(m: Interpreter, outcome: Outcome, hook: Hook, cell: Captured, position: int) -> Rebinding | None:
    """Something on the way to the cell was built anew: an object with its own tensors, or just a list or dictionary of them."""
    site = nearest(m.sites, cell, position)
    rebuilt = cell.edges[position + 1].holder
    if site is None or _moved_under(m, cell) or _stands_elsewhere(outcome, cell, rebuilt):
        return None
    if captured_anew(m, rebuilt, current(cell.edges[position])):
        return None
    if isinstance(rebuilt, (ListValue, DictValue)) and all(
        isinstance(e.holder, (ListValue, DictValue)) for e in cell.edges[position + 1 :]
    ):
        binding = Binding.SLOT if site.binding is Binding.SLOT else Binding.ATTRIBUTE
        return make_fact(m, outcome, hook, cell, site, Hazard.ADDRESS, binding, None, upto=position)
    return make_fact(m, outcome, hook, cell, site, Hazard.LIFETIME, Binding.HOLDER, None, upto=position)


def _stands_elsewhere(outcome: Outcome, cell: Captured, rebuilt: object) -> bool:
    """Another cell, not below what was built anew, held the same memory: what became of that one is its own finding."""
    return any(
        other.storage is cell.storage and all(edge.holder is not rebuilt for edge in other.edges)
        for other in outcome.captured or []
        if other is not cell
    )


def _moved_under(m: Interpreter, cell: Captured) -> bool:
    """The tensor object of the cell is a registered one that shows other memory now: what moved it is to blame."""
    return cell.tensor.is_parameter and cell.tensor.storage is not cell.storage and id(cell.tensor) in m.moved


def _stale(m: Interpreter, outcome: Outcome, hook: Hook, cell: Captured) -> Rebinding | None:
    """The cell still shows the captured storage, whose contents the second run did not refresh (or from a stale source)."""
    holder = cell.last.holder
    if not cell.epochs or not cell.storage.epochs & FIRST or (id(holder), cell.last.key) in m.revived:
        return None
    site = nearest(outcome.first_sites or {}, cell) or (outcome.first_moved or {}).get(id(cell.tensor))
    if site is None:
        return None
    old = site.old
    lost = (
        isinstance(old, Tensor)
        and old.storage.number in cell.storage.sources
        and old.storage.number != cell.storage.number
    )
    if (
        lost
        and isinstance(old, Tensor)
        and cell.registered
        and cell.content == m.terms.of("weight", old.storage.weight)
    ):
        return None  # a parameter that was only cast: loading into it casts again
    guard = guard_of(m, outcome, site)
    if guard is not None and asks_flag(guard[0], str(cell.last.key)):
        lost = False  # whatever became of the source, the flag keeps the hook from looking at it
    own = _own_position(cell)
    upto = own if own < len(cell.edges) - 1 else None
    if (id(cell.edges[own].holder), cell.edges[own].key) not in (outcome.first_sites or {}):  # a part of what was bound
        inside = (i for i, e in enumerate(cell.edges) if isinstance(e.holder, (ListValue, DictValue)))
        upto = min(next(inside, len(cell.edges)) - 1, own)
    return make_fact(
        m,
        outcome,
        hook,
        cell,
        site,
        Hazard.FRESHNESS,
        Binding.NONE,
        cell.tensor,
        lost=lost,
        guard=guard,
        upto=upto,
    )


def _left_raw(m: Interpreter, outcome: Outcome, hook: Hook, cell: Captured) -> Rebinding | None:
    """The first run transformed what was loaded; a guard let the second run leave it as the checkpoint has it."""
    label = cell.storage.weight or _loaded_as(cell)
    raw = m.terms.of("weight", label)
    if not label or cell.storage.content != raw or cell.content == raw or cell.tensor.path:
        return None
    if hook.from_loading and not cell.epochs:
        return None  # memory that was made for what is loaded next
    site = (
        (outcome.first_copies or {}).get(cell.storage.number)
        or (outcome.first_moved or {}).get(id(cell.tensor))
        or nearest(outcome.first_sites or {}, cell)
    )
    if not cell.storage.weight and (_is_put_again(m, cell) or cell.shape == resized(m, cell.content)):
        return None  # what is there was put there again, or nothing can be loaded into it
    guard = guard_of(m, outcome, site)
    not_called = hook.after_model and outcome.protocol is Protocol.LAYERWISE
    if site is None or (guard is None and not not_called):
        return None
    fact = make_fact(m, outcome, hook, cell, site, Hazard.FRESHNESS, Binding.NONE, cell.tensor, guard=guard)
    return replace(fact, certain=True)


def _has_no_room(m: Interpreter, outcome: Outcome, cell: Captured) -> bool:
    """Layerwise reloading copies what was loaded into the memory that the first run moved ``.data`` to: where that has another
    shape, as far as is known, it raises.
    """
    moved = outcome.protocol is Protocol.LAYERWISE and id(cell.tensor) in (outcome.first_moved or {})
    return moved and cell.shape != m.terms.of("shape", cell.storage.weight or _loaded_as(cell))


def _is_put_again(m: Interpreter, cell: Captured) -> bool:
    """Whether the second run bound the cell; to wrap the memory that is there into a new parameter binds nothing else."""
    site = nearest(m.sites, cell)
    if site is None:
        return False
    value, old = site.value, site.old
    return not (isinstance(value, Tensor) and isinstance(old, Tensor) and value.storage is old.storage is cell.storage)


def _loaded_as(cell: Captured) -> str:
    """The checkpoint's name of what a loader writes into the memory that the first run put in a parameter's place."""
    holder, name = cell.last.holder, str(cell.last.key)
    loaded = cell.registered and cell.tensor.is_parameter and isinstance(holder, Obj) and name in holder.initial
    return f"{holder.label}.{name}" if isinstance(holder, Obj) and loaded else ""
