"""Cases: a model, a step and a reload in one function of the host's, named on the command line as
``pkg.module:make_case``.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from rebindlint.model import Protocol, RebindlintError
from rebindlint.runtime.capture import first_line
from rebindlint.runtime.compare import Tolerance
from rebindlint.runtime.devices import chosen_device
from rebindlint.runtime.fresh import Fresh
from rebindlint.runtime.guard import Guard
from rebindlint.runtime.report import Report
from rebindlint.runtime.steps import Step

__all__ = ["Case", "load_case", "run_case", "verify_case"]


@dataclass(frozen=True, slots=True)
class Case:
    """What `verify_case` needs. A function named by ``--case`` may also give a mapping with these keys, or a tuple
    (model, step, reload) or (model, step, reload, fresh), so that it does not have to import rebindlint.
    """

    model: torch.nn.Module
    step: Step
    reload: Callable[[], Any]
    fresh: Fresh | None = None
    roots: Mapping[str, object] = field(default_factory=dict)
    protocol: Protocol | str = Protocol.DIRECT
    updates: Sequence[str] = ()
    same_weights: bool = False
    tolerance: Tolerance | None = None
    look_inside: Sequence[str] = ()


def run_case(reference: str, *, device: str = "auto") -> Report:
    """Load ``pkg.module:function`` and verify the case that it makes. Raises RebindlintError, in one line, for
    whatever goes wrong in the host's code: a wrong name, an exception of the function, the step or the reload.
    """
    case = load_case(reference, device=device)
    try:
        return verify_case(case, device=device)
    except RebindlintError:
        raise
    except (Exception, SystemExit) as error:  # the host's step while warming up, or its reload
        raise RebindlintError(f"case {reference} failed: {first_line(error)}") from error


def verify_case(case: Case, *, device: str = "auto") -> Report:
    """What the step raises before the reload and what the reload raises passes through."""
    guard = Guard(
        case.model, roots=case.roots, device=device, tolerance=case.tolerance, look_inside=tuple(case.look_inside)
    )
    try:
        guard.capture(case.step)
        with guard.reloading(protocol=case.protocol, updates=case.updates, same_weights=case.same_weights):
            case.reload()
        return guard.verify(case.fresh)
    finally:
        guard.close()


def load_case(reference: str, *, device: str = "auto") -> Case:
    """Import the function and call it, with ``device=`` ("cpu" or "cuda") if it takes that. Raises RebindlintError."""
    module_name, _, name = reference.partition(":")
    if not module_name or not name:
        raise RebindlintError(f"a case is named pkg.module:function, not {reference!r}")
    make = _function(module_name, name)
    wanted = chosen_device(device)
    try:
        made = make(device=wanted) if "device" in inspect.signature(make).parameters else make()
    except (Exception, SystemExit) as error:  # the host's function
        raise RebindlintError(f"case {reference} could not be made: {first_line(error)}") from error
    return _as_case(made, reference)


def _function(module_name: str, name: str) -> Callable[..., Any]:
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)  # as `python -m` does: a case often lies beside where the command is run
    try:
        value: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # importing runs the host's code
        raise RebindlintError(f"cannot import {module_name}: {first_line(error)}") from error
    for part in name.split("."):
        value = getattr(value, part, None)
    if not callable(value):
        raise RebindlintError(f"{module_name} has no function {name}")
    return value  # type: ignore[no-any-return]


def _as_case(made: Any, reference: str) -> Case:
    if isinstance(made, Case):
        return made
    try:
        if isinstance(made, Mapping):
            return Case(**made)
        if isinstance(made, tuple) and 3 <= len(made) <= 4:
            return Case(*made)
    except TypeError as error:
        raise RebindlintError(f"case {reference} gives a wrong mapping: {first_line(error)}") from error
    raise RebindlintError(
        f"case {reference} gives a {type(made).__name__}; wanted a rebindlint.runtime.Case, a mapping with its fields, "
        "or a tuple (model, step, reload[, fresh])"
    )
