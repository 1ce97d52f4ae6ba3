"""Oracle C, the tensors: does each of the live model hold what a fresh load of the same weights holds?"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from rebindlint.runtime.census import Limits, TensorRecord, take_census
from rebindlint.runtime.compare import Outcome, Tolerance, same_values
from rebindlint.runtime.findings import Comparison, Finding, make_finding
from rebindlint.runtime.moments import Moments, reader_of

__all__ = ["compared_values"]


def compared_values(
    moments: Moments, model: torch.nn.Module, fresh: torch.nn.Module, tolerance: Tolerance, limits: Limits
) -> tuple[list[Finding], Comparison]:
    """RT104 for each that differs, and the comparison of all."""
    now = _by_path(model, limits)
    wanted = _by_path(fresh, limits)
    compared = 0
    findings = []
    for path, record in wanted.items():
        finding, counted = _value_finding(moments, path, now.get(path), record, tolerance)
        compared += counted
        if finding is not None:
            findings.append(finding)
    subject = f"{compared} tensors of the live model against a fresh load"
    return findings, Comparison(subject, str(tolerance), not findings)


def _by_path(model: torch.nn.Module, limits: Limits) -> Mapping[str, TensorRecord]:
    records: dict[str, TensorRecord] = {}
    for record in take_census({"model": model}, limits).records:
        records.setdefault(record.path, record)
    return records


def _value_finding(
    moments: Moments, path: str, live: TensorRecord | None, fresh: TensorRecord, tolerance: Tolerance
) -> tuple[Finding | None, int]:
    """The finding, if any, and 1 if the tensor was compared."""
    cell = moments.reload.before.cells.get(path)
    registered = fresh.kind in ("parameter", "buffer")
    if cell is not None and (not moments.values_matter(cell) or cell.number in moments.captured.handles):
        return None, 0
    if cell is None and not registered:
        return None, 0
    if live is None:
        if not registered:
            return None, 0
        outcome = Outcome(False, None, 0.0, "it does not exist in the live model")
    elif fresh.tensor.is_meta or live.tensor.is_meta:
        return None, 0
    else:
        with torch.inference_mode(), torch._C.DisableTorchFunction():
            outcome = same_values(fresh.tensor, live.tensor, tolerance)
    if outcome.equal:
        return None, 1
    external = moments.captured.capture.externals.get(cell.number) if cell is not None else None
    reader = reader_of(external) if external is not None else None
    after = moments.reload.after.cells.get(path)
    evidence: tuple[str, ...] = ()
    if cell is not None and after is not None and cell.digest is not None and cell.digest == after.digest:
        evidence = ("its bytes did not change during the reload",)
    return make_finding(
        "RT104",
        f"`{path}` differs from a fresh load of the same weights ({outcome.gap})",
        (reader.site if reader else None) or moments.captured.step_site,
        moments.protocol,
        tensor=path,
        module=fresh.module_class,
        reader=reader,
        new=moments.new_state(after),
        compared=Comparison(
            "values against a fresh load", str(tolerance), False, outcome.max_difference, outcome.nan_fraction
        ),
        evidence=evidence,
    ), 1
