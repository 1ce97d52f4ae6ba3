"""Findings as they are read back from JSON. Needs no torch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rebindlint.model import Protocol, Severity
from rebindlint.runtime.findings import Comparison, Finding, Reader, StorageState
from rebindlint.runtime.sites import Site

__all__ = ["stored_finding"]

Record = dict[str, Any]


def stored_finding(record: Record, *evidence: str) -> Finding:
    """The finding as it was made, with more evidence. Call chains come back as lines without columns; details of another
    version are left out rather than the finding.
    """
    start, end = record["location"], record.get("end_location") or record["location"]
    place = Site(record["filename"], start["row"], start["column"], end["row"], end["column"], "")
    try:
        return Finding(
            code=record["code"],
            severity=Severity(record["severity"]),
            message=record["message"],
            place=place,
            protocol=Protocol((record.get("reload") or ["direct"])[0]),
            tensor=record.get("tensor") or "",
            also=tuple(record.get("also") or ()),
            module=record.get("module") or "",
            reader=_reader(record.get("read_by")),
            rebound=tuple(_frame_site(frame) for frame in reversed(record.get("trace") or ())),
            hook=record.get("hook") or "",
            old=_storage(record.get("old_storage")),
            new=_storage(record.get("new_storage")),
            compared=_comparison(record.get("compared")),
            evidence=(*(record.get("evidence") or ()), *evidence),
            static_rules=tuple(record.get("static_rules") or ()),
        )
    except (KeyError, TypeError, ValueError, AttributeError):  # details of another version: the finding itself counts
        severity = next((s for s in Severity if s.value == record["severity"]), Severity.ERROR)
        plain = Finding(record["code"], severity, record["message"], place, Protocol.DIRECT)
        return replace(plain, evidence=evidence)


def _site(record: Record | None) -> Site | None:
    if record is None:
        return None
    row, column = record["row"], record["column"]
    return Site(record["filename"], row, column, row, column, record["function"])


def _frame_site(frame: Record) -> Site:
    return Site(frame["filename"], frame["row"], 1, frame["row"], 1, str(frame["text"]).partition(":")[0])


def _reader(record: Record | None) -> Reader | None:
    if record is None:
        return None
    return Reader(record["operator"], record["argument"], record["access"], _site(record["at"]))


def _storage(record: Record | None) -> StorageState | None:
    if record is None:
        return None
    return StorageState(int(record["address"], 16), record["nbytes"], record["device"], record["state"])


def _comparison(record: Record | None) -> Comparison | None:
    if record is None:
        return None
    return Comparison(
        record["subject"], record["tolerance"], record["equal"], record["max_difference"], record["nan_fraction"]
    )
