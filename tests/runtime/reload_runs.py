"""One reload from capture to verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from rebindlint.runtime.guard import Guard
from rebindlint.runtime.report import Report

from .reload_models import Layer, inputs, load


def verify(
    model: nn.Module,
    reload: Callable[[], object],
    *,
    step: Callable[[Any], Any] | None = None,
    fresh: Callable[[], Any] | None = None,
    **options: Any,
) -> Report:
    x = inputs()
    guard = Guard(model)
    guard.capture(step or (lambda model: model(x)))
    with guard.reloading(**options):
        reload()
    return guard.verify(fresh)


def reloaded(kind: Callable[[], Layer], *, with_fresh: bool = False, **options: Any) -> Report:
    layer = load(kind)
    return verify(layer, lambda: layer.load(2), fresh=(lambda: load(kind, 2)) if with_fresh else None, **options)


def codes_of(report: Report) -> set[str]:
    return {finding.code for finding in report.findings}
