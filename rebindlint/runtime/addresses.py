"""Oracle A, addresses: does the model still use, where the capture found it, each storage that the captured step
holds?
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rebindlint.model import Severity
from rebindlint.runtime.blame import blame
from rebindlint.runtime.difference import Move
from rebindlint.runtime.findings import Finding, make_finding
from rebindlint.runtime.moments import Moments, reader_of
from rebindlint.runtime.recorder import External
from rebindlint.runtime.sites import Site
from rebindlint.runtime.snapshot import Cell, StorageFacts

__all__ = ["capture_findings", "reload_findings"]


def capture_findings(moments: Moments) -> Iterator[Finding]:
    """RT101, RT103 and the errors of RT108: these rest on what the captured step holds."""
    captured, after = moments.captured, moments.reload.after
    moved = {external.number for external in captured.capture.moved()}
    for external in captured.capture.externals.values():
        number = external.number
        then, now = captured.snapshot.names(number), after.names(number)
        here = [cell for cell in then if _still_there(cell, now)]
        if number in captured.handles:
            stale = not here or int(external.tensor) != captured.handles[number]
            if stale and number not in moments.followed:
                yield _stale_handle(moments, external, then)
        elif number in moved:
            yield _held_dead(moments, external, then, moved=True)
        elif (then and not here) or (not then and not now and number in moments.unowned - captured.loose):
            yield _held_dead(moments, external, then)
    yield from _relaid_and_read(moments)


def _still_there(cell: Cell, now: list[Cell]) -> bool:
    return any(other.path == cell.path or other.slot == cell.slot for other in now)


def _held_dead(moments: Moments, external: External, then: list[Cell], *, moved: bool = False) -> Finding:
    cell = then[0] if then else None
    after = moments.reload.after.find(cell) if cell else None
    reader = reader_of(external)
    held = StorageFacts(external.number, external.address, external.nbytes, str(external.tensor.device))
    old = moments.old_state(held, moved=moved)
    name = f"`{cell.path}`" if cell else f"a tensor outside the roots, used by {reader}"
    still = f"the captured step still {'writes' if reader.access == 'write' else 'reads'} the old one"
    if moved:
        message = f"{name} had its memory moved or released by the reload; {still}"
    elif after is None and cell:
        message = f"{name} was released by the reload; {still}"
    elif cell:
        when = "by the reload" if moments.reload.before.names(external.number) else "between capture and reload"
        message = f"{name} was bound to other storage {when}; {still}, {_FATE[old.state]}"
    else:
        message = f"{name} lost its last owner in the reload; {still}"
    found = blame(cell, after, moments.reload.events) if cell else None
    return make_finding(
        "RT101",
        message,
        _place(moments, found.rebound if found else (), reader.site),
        moments.protocol,
        tensor=cell.path if cell else "",
        also=tuple(other.path for other in then[1:]),
        module=cell.module_class if cell else "",
        reader=reader,
        old=old,
        new=moments.new_state(after),
        **(found.finding_fields() if found else {}),
    )


_FATE: Final = {
    "unowned": "which nothing else keeps",
    "kept": "which something outside the model keeps",
    "elsewhere": "which the model now uses under another name",
}


def _stale_handle(moments: Moments, external: External, then: list[Cell]) -> Finding:
    cell = then[0] if then else None
    after = moments.reload.after.find(cell) if cell else None
    found = blame(cell, after, moments.reload.events) if cell else None
    held = StorageFacts(external.number, external.address, external.nbytes, "cpu")
    reader = reader_of(external)
    return make_finding(
        "RT103",
        f"native handle `{cell.path if cell else 'outside the roots'}` was replaced by the reload; "
        "the captured step still passes the old one",
        _place(moments, found.rebound if found else (), reader.site),
        moments.protocol,
        tensor=cell.path if cell else "",
        also=tuple(other.path for other in then[1:]),
        module=cell.module_class if cell else "",
        reader=reader,
        old=moments.old_state(held),
        new=moments.new_state(after),
        evidence=(f"the handle was {moments.captured.handles[external.number]:#x} at capture",),
        **(found.finding_fields() if found else {}),
    )


def _relaid_and_read(moments: Moments) -> Iterator[Finding]:
    externals = moments.captured.capture.externals
    for before, after in moments.reload.difference.relaid:
        external = externals.get(before.number)
        if external is not None and any(use.layout == before.layout for use in external.uses):
            yield _relaid(moments, before, after, external)


def reload_findings(moments: Moments, *, capture_trusted: bool) -> Iterator[Finding]:
    """RT107, and where the capture can be trusted RT109 and the notes of RT108: these compare before and after the
    reload.
    """
    split = set()
    for group in moments.reload.difference.split:
        split |= {move.before.path for move in group.moved}
        first = group.moved[0]
        partner = group.stayed[0].path if group.stayed else group.moved[1].before.path
        found = blame(first.before, first.after, moments.reload.events)
        yield make_finding(
            "RT107",
            f"`{first.before.path}` and `{partner}` shared storage before the reload and no longer do",
            _place(moments, found.rebound, None),
            moments.protocol,
            tensor=first.before.path,
            also=tuple([c.path for c in group.stayed] + [m.before.path for m in group.moved[1:]]),
            module=first.before.module_class,
            old=moments.old_state(group.old),
            new=moments.new_state(first.after),
            **found.finding_fields(),
        )
    if not capture_trusted:
        return
    externals = moments.captured.capture.externals
    for before, after in moments.reload.difference.relaid:
        external = externals.get(before.number)
        if external is None or all(use.layout != before.layout for use in external.uses):
            yield _relaid(moments, before, after, None)
    for move in moments.reload.difference.moved:
        if move.before.number not in externals and move.before.path not in split and move.before.kind != "grad":
            yield _unread(moments, move)


def _relaid(moments: Moments, before: Cell, after: Cell, external: External | None) -> Finding:
    found = blame(before, after, moments.reload.events)
    reader = reader_of(external) if external is not None else None
    consequence = (
        "the captured step reads the old layout" if external is not None else "the captured step does not read it"
    )
    return make_finding(
        "RT108",
        f"`{before.path}` changed its layout on the same storage from {before.layout} to {after.layout}; {consequence}",
        _place(moments, found.rebound, reader.site if reader else None),
        moments.protocol,
        severity=Severity.ERROR if external is not None else Severity.NOTE,
        tensor=before.path,
        module=before.module_class,
        reader=reader,
        old=moments.new_state(after),
        new=moments.new_state(after),
        **found.finding_fields(),
    )


def _unread(moments: Moments, move: Move) -> Finding:
    found = blame(move.before, move.after, moments.reload.events)
    what = "was bound to other storage" if move.after is not None else "was released"
    return make_finding(
        "RT109",
        f"`{move.before.path}` {what} by the reload; the captured step does not read it",
        _place(moments, found.rebound, None),
        moments.protocol,
        tensor=move.before.path,
        module=move.before.module_class,
        old=moments.old_state(move.old),
        new=moments.new_state(move.after),
        **found.finding_fields(),
    )


def _place(moments: Moments, rebound: tuple[Site, ...], reader: Site | None) -> Site:
    return rebound[0] if rebound else reader or moments.captured.step_site
