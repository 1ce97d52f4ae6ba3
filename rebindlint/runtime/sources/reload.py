"""Load one scenario, run a step, reload it through the tree's layerwise reload, and note where everything lies."""

from __future__ import annotations

import gc
from collections import defaultdict
from typing import Any

import torch

from rebindlint.runtime.blame import blame
from rebindlint.runtime.capture import first_line
from rebindlint.runtime.difference import Difference, difference
from rebindlint.runtime.recorder import External
from rebindlint.runtime.sites import definition_site, resolve
from rebindlint.runtime.snapshot import Cell, Snapshot, take_snapshot
from rebindlint.runtime.sources.engine import Engine
from rebindlint.runtime.sources.facts import Change, Memory, ScenarioFacts, Use
from rebindlint.runtime.sources.reads import ReadRecorder, reading
from rebindlint.runtime.sources.scenario import Absent, OneLayer, Scenario
from rebindlint.runtime.sources.upstream import upstream
from rebindlint.runtime.watch import Event, Watch

__all__ = ["run_scenario"]

_ROOT = "layer"


def run_scenario(method: str, scenario: Scenario, engine: Engine) -> ScenarioFacts:
    """Never raises for what the tree raises: that is the outcome's ``error``."""
    engine.forget_layers()
    try:
        with engine.working():
            model = OneLayer(_as_loaded(scenario, engine))
    except Absent as reason:
        return ScenarioFacts(method, scenario.variant, absent=str(reason))
    except Exception as error:  # whatever the tree raises
        return ScenarioFacts(method, scenario.variant, error=f"it could not be built and loaded: {first_line(error)}")
    place = definition_site(scenario.hook(model.layer))
    step_error = _warm_up(scenario, model, engine)
    before, census = take_snapshot({_ROOT: model.layer})
    watch = Watch(list(census.owners), junk=False)
    del census  # it holds the tensors
    readers, operators, step_error = _reads(scenario, model, engine, step_error)
    common: dict[str, Any] = {
        "classes": _classes(model.layer),
        "place": place,
        "tensors": len(before.cells),
        "storages": len(before.storages),
        "reads": len(readers.keys() & before.storages.keys()),
        "operators": operators,
        "step_error": step_error,
    }
    try:
        with engine.working(), watch:
            _reload(scenario, model, engine)
    except Exception as error:
        text = f"the layerwise reload did not finish: {first_line(error)}"
        return ScenarioFacts(method, scenario.variant, error=text, **common)
    gc.collect()  # cycles that the reload left would look like owners
    after, _ = take_snapshot({_ROOT: model.layer})
    found = _changes(before, after, difference(before, after), watch.events, readers)
    notes = (f"{watch.lost} events of the reload could not be noted",) if watch.lost else ()
    return ScenarioFacts(method, scenario.variant, changes=tuple(found), notes=notes, **common)


def _as_loaded(scenario: Scenario, engine: Engine) -> Any:
    layer = scenario.build()
    upstream("vllm.model_executor.model_loader.reload").record_metadata_for_reloading(OneLayer(layer))
    scenario.load(layer, 1)
    scenario.process(layer)
    chosen = _classes(layer)
    if not any(scenario.kernel in name for name in chosen):
        raise RuntimeError(f"the release runs it on {', '.join(chosen)} and not on {scenario.kernel}")
    return layer


def _reload(scenario: Scenario, model: OneLayer, engine: Engine) -> None:
    reload = upstream("vllm.model_executor.model_loader.reload")
    reload.initialize_layerwise_reload(model)
    scenario.load(model.layer, 2)
    reload.finalize_layerwise_reload(model, engine.model_config)


def _warm_up(scenario: Scenario, model: OneLayer, engine: Engine) -> str:
    """Run the step once, so that what it makes lazily is there before the reload; gives back what it raised."""
    if scenario.step is None:
        return "no step is known for it"
    try:
        with engine.working(), engine.forward():
            scenario.step(model.layer)
    except Exception as error:
        return first_line(error)
    return ""


def _reads(scenario: Scenario, model: OneLayer, engine: Engine, failed: str) -> tuple[dict[int, Use], int, str]:
    """Which storages the step reads, by number; what it read until it stopped counts as well."""
    if scenario.step is None:
        return {}, 0, failed
    recorder = ReadRecorder()
    try:
        with engine.working(), engine.forward(), reading(recorder):
            scenario.step(model.layer)
    except Exception as error:
        failed = failed or first_line(error)
    return {number: _use(external) for number, external in recorder.externals.items()}, recorder.count, failed


def _use(external: External) -> Use:
    use = external.reader
    site = resolve(use.site) if use.site else None
    return Use(use.operator, use.argument, "write" if use.writes else "read", site)


def _classes(layer: torch.nn.Module) -> tuple[str, ...]:
    """The classes that the release chose for the layer."""
    found: list[Any] = [layer]
    for module in layer.modules():
        parts = [getattr(module, name, None) for name in ("quant_method", "scheme", "impl")]
        found += parts
        found += [getattr(part, name, None) for part in parts for name in ("kernel", "fp8_linear", "experts_cls")]
    kinds = [value if isinstance(value, type) else type(value) for value in found if value is not None]
    return tuple(dict.fromkeys(kind.__qualname__ for kind in kinds))


# What moved


def _changes(
    before: Snapshot, after: Snapshot, changed: Difference, events: list[Event], readers: dict[int, Use]
) -> list[Change]:
    moved: dict[int, list[Cell]] = defaultdict(list)
    for move in changed.moved:
        moved[move.before.number].append(move.before)
    found = [_left(number, cells, before, after, events, readers) for number, cells in moved.items()]
    found += [_relaid(old, new, before, after, events, readers) for old, new in changed.relaid]
    return sorted(found, key=lambda change: (change.kind, change.tensor))


def _left(
    number: int, cells: list[Cell], before: Snapshot, after: Snapshot, events: list[Event], readers: dict[int, Use]
) -> Change:
    first = next((cell for cell in cells if after.find(cell) is not None), cells[0])
    now = after.find(first)
    gone = {cell.path for cell in cells}
    stayed = tuple(cell.path for cell in before.names(number) if cell.path not in gone)
    also = tuple(cell.path for cell in cells if cell is not first)
    return _change("split" if stayed else "dead", first, now, also, stayed, before, after, events, readers)


def _relaid(
    old: Cell, new: Cell, before: Snapshot, after: Snapshot, events: list[Event], readers: dict[int, Use]
) -> Change:
    return _change("relaid", old, new, (), (), before, after, events, readers)


def _change(
    kind: str,
    old: Cell,
    new: Cell | None,
    also: tuple[str, ...],
    stayed: tuple[str, ...],
    before: Snapshot,
    after: Snapshot,
    events: list[Event],
    readers: dict[int, Use],
) -> Change:
    found = blame(old, new, events)
    return Change(
        kind,
        old.path,
        also,
        stayed,
        old.module_class,
        _memory(before, old.number, _state(before, after, old.number)),
        _memory(after, new.number, "live") if new is not None else None,
        (str(old.layout), str(new.layout) if new is not None else ""),
        tuple(found.rebound),
        found.hook,
        found.rules,
        readers.get(old.number),
    )


def _state(before: Snapshot, after: Snapshot, number: int) -> str:
    if after.names(number):
        return "elsewhere"
    return "unowned" if before.weak.freed(number) else "kept"


def _memory(snapshot: Snapshot, number: int, state: str) -> Memory:
    facts = snapshot.storages[number]
    return Memory(facts.address, facts.nbytes, facts.device, state)
