"""What the reload did to values, by their hashes before and after: RT105 uninitialised, RT106 non-idempotent, RT110
untouched.
"""

from __future__ import annotations

from collections.abc import Iterator

from rebindlint.runtime.blame import blame
from rebindlint.runtime.findings import Comparison, Finding, make_finding
from rebindlint.runtime.moments import Moments, matches, reader_of
from rebindlint.runtime.sites import resolve
from rebindlint.runtime.snapshot import Cell

__all__ = ["unmatched_updates", "untouched", "value_findings"]


def value_findings(moments: Moments) -> Iterator[Finding]:
    """RT105 and RT106: these need no trust in the capture beyond knowing which tensors the step writes itself."""
    if moments.reload.junk:
        yield from _uninitialised(moments)
    if moments.reload.same_weights:
        yield from _changed(moments)


def _pairs(moments: Moments) -> Iterator[tuple[Cell, Cell]]:
    """Cells before and after whose values matter, one path a tensor."""
    seen: set[tuple[int, object]] = set()
    for before in moments.reload.before.cells.values():
        after = moments.reload.after.find(before)
        if after is None or (before.number, before.layout) in seen or not moments.values_matter(before):
            continue
        seen.add((before.number, before.layout))
        yield before, after


def _uninitialised(moments: Moments) -> Iterator[Finding]:
    reload = moments.reload
    for before, after in _pairs(moments):
        fractions = reload.after.nan.get((after.number, after.layout))
        earlier = reload.before.nan.get((before.number, before.layout), (0.0, 0.0))
        if fractions is None or fractions[0] <= earlier[0]:
            continue
        nan, ones = fractions
        found = blame(before, after, reload.events)
        allocated = next((j for j in reload.junk if j.number == after.number), None) or next(
            (j for j in reload.junk if j.nbytes == reload.after.storages[after.number].nbytes), None
        )
        site = resolve(allocated.chain[0]) if allocated is not None and allocated.chain else None
        kind = "the filling itself" if ones else "NaN computed from the filling"
        evidence = [f"{ones or nan:.0%} of its elements are {kind}"]
        if site is not None:
            evidence.append(f"memory of this size was allocated without a value at {site} in {site.function}")
        yield make_finding(
            "RT105",
            f"`{before.path}` holds memory that the reload allocated and nothing wrote ({nan:.0%} of it reads as NaN)",
            site or (found.rebound[0] if found.rebound else moments.captured.step_site),
            moments.protocol,
            tensor=before.path,
            module=before.module_class,
            new=moments.new_state(after),
            evidence=tuple(evidence),
            rebound=found.rebound,
            hook=found.hook,
        )


def _changed(moments: Moments) -> Iterator[Finding]:
    for before, after in _pairs(moments):
        if before.number in moments.captured.handles:
            continue
        relaid = (before.layout.shape, before.layout.dtype) != (after.layout.shape, after.layout.dtype)
        if not relaid and (before.digest is None or after.digest is None or before.digest == after.digest):
            continue
        what = f"from {before.layout} to {after.layout}" if relaid else "in its values"
        found = blame(before, after, moments.reload.events)
        yield make_finding(
            "RT106",
            f"`{before.path}` changed {what} although the same weights were loaded again",
            found.rebound[0] if found.rebound else moments.captured.step_site,
            moments.protocol,
            tensor=before.path,
            module=before.module_class,
            new=moments.new_state(after),
            compared=Comparison("bytes before and after loading the same weights", "exact", False),
            rebound=found.rebound,
            hook=found.hook,
        )


def untouched(moments: Moments) -> Iterator[Finding]:
    """RT110: needs a capture that can be trusted."""
    externals = moments.captured.capture.externals
    if not moments.reload.updates:
        return
    for before, after in _pairs(moments):
        external = externals.get(before.number)
        if external is None or not external.read or not matches(before, moments.reload.updates):
            continue
        if before.digest is not None and before.digest == after.digest:
            reader = reader_of(external)
            yield make_finding(
                "RT110",
                f"`{before.path}` should have been updated by the reload and holds the same bytes as before",
                reader.site or moments.captured.step_site,
                moments.protocol,
                tensor=before.path,
                module=before.module_class,
                reader=reader,
                old=moments.new_state(after),
                new=moments.new_state(after),
                compared=Comparison("bytes before and after the reload", "exact", True),
            )


def unmatched_updates(moments: Moments) -> list[str]:
    """Patterns of ``updates`` that name no tensor: a typing error would otherwise look like silence."""
    cells = moments.reload.before.cells.values()
    return [pattern for pattern in moments.reload.updates if not any(matches(cell, (pattern,)) for cell in cells)]
