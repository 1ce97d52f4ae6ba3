"""What the runtime half reports. Needs no torch: findings are plain values that can be sent, stored and shown
elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from rebindlint.model import Diagnostic, Frame, Protocol, Severity
from rebindlint.report.json import as_record
from rebindlint.runtime.codes import code
from rebindlint.runtime.sites import Site

__all__ = ["Comparison", "Finding", "Reader", "StorageState", "make_finding"]


@dataclass(frozen=True, slots=True)
class Reader:
    """The operator of the captured step that takes the tensor; ``access`` is read or write."""

    operator: str
    argument: str
    access: str
    site: Site | None

    def __str__(self) -> str:
        where = f" at {self.site} in {self.site.function}" if self.site else ""
        return f"{self.operator} ({self.argument}){where}"


_IN_WORDS: Final = {
    "live": "the model uses it",
    "elsewhere": "the model uses it under another name",
    "kept": "something outside the model keeps it",
    "unowned": "nothing but the captured step keeps it",
    "moved": "its memory was moved",
}


@dataclass(frozen=True, slots=True)
class StorageState:
    """A storage at the check. ``state``: live (the model uses it), elsewhere (under another name), kept (something
    outside the roots keeps it), unowned (the capture alone keeps it), moved (same storage object, other memory).
    """

    address: int
    nbytes: int
    device: str
    state: str

    def __str__(self) -> str:
        return f"{self.address:#x} ({self.nbytes} bytes on {self.device}; {_IN_WORDS.get(self.state, self.state)})"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was compared within which tolerance, and what came out; ``max_difference`` counts finite elements, and is
    None where shapes differ (NaN where no element is finite)."""

    subject: str
    tolerance: str
    equal: bool
    max_difference: float | None = None
    nan_fraction: float = 0.0

    def __str__(self) -> str:
        outcome = "equal" if self.equal else "different"
        if not self.equal and self.max_difference is not None and not math.isnan(self.max_difference):
            outcome += f", largest difference {self.max_difference:.3g}"
        if self.nan_fraction:
            outcome += f", {self.nan_fraction:.0%} NaN"
        return f"{self.subject} ({self.tolerance}): {outcome}"


@dataclass(frozen=True, slots=True)
class Finding:
    """``tensor`` is the path from a root, "" when the finding is about the step as a whole; ``also`` are its other
    paths.

    ``rebound`` leads to the line that bound the new storage, innermost first. ``place`` is what a report points at:
    that line, else the reader's, else the step's definition. ``static_rules`` are the static half's rules of the same
    kind.
    """

    code: str
    severity: Severity
    message: str
    place: Site
    protocol: Protocol
    tensor: str = ""
    also: tuple[str, ...] = ()
    module: str = ""
    reader: Reader | None = None
    rebound: tuple[Site, ...] = ()
    hook: str = ""
    old: StorageState | None = None
    new: StorageState | None = None
    compared: Comparison | None = None
    evidence: tuple[str, ...] = ()
    static_rules: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return code(self.code).name

    @property
    def trace(self) -> tuple[Frame, ...]:
        """The chain of calls to the line that rebound the tensor, outermost first."""
        return tuple(site.frame for site in reversed(self.rebound))

    def diagnostic(self) -> Diagnostic:
        """The finding in the static half's terms."""
        return Diagnostic(
            code=self.code,
            name=self.name,
            message=self.message,
            severity=self.severity,
            place=self.place.place,
            attribute=self.tensor,
            hook=self.hook,
            reload=(self.protocol,),
            trace=self.trace,
        )

    def to_json(self) -> dict[str, Any]:
        """The static half's keys, then ``tensor`` to ``static_rules``; rows and columns count from 1."""
        return {
            **as_record(self.diagnostic()),
            "tensor": self.tensor,
            "also": list(self.also),
            "module": self.module,
            "read_by": _reader_json(self.reader),
            "rebound_at": _site_json(self.rebound[0]) if self.rebound else None,
            "old_storage": _storage_json(self.old),
            "new_storage": _storage_json(self.new),
            "compared": _comparison_json(self.compared),
            "evidence": list(self.evidence),
            "static_rules": list(self.static_rules),
        }

    @property
    def sort_key(self) -> tuple[str, str, str]:
        return (self.code, self.tensor, self.message)


def make_finding(number: str, message: str, place: Site, protocol: Protocol, **rest: Any) -> Finding:
    """A finding with the code's own severity and static rules unless others are given."""
    entry = code(number)
    rest.setdefault("severity", entry.severity)
    rest.setdefault("static_rules", entry.static)
    return Finding(code=number, message=message, place=place, protocol=protocol, **rest)


def _site_json(site: Site | None) -> dict[str, Any] | None:
    if site is None:
        return None
    return {"filename": site.filename, "row": site.row, "column": site.column, "function": site.function}


def _reader_json(reader: Reader | None) -> dict[str, Any] | None:
    if reader is None:
        return None
    return {
        "operator": reader.operator,
        "argument": reader.argument,
        "access": reader.access,
        "at": _site_json(reader.site),
    }


def _storage_json(storage: StorageState | None) -> dict[str, Any] | None:
    if storage is None:
        return None
    return {
        "address": f"{storage.address:#x}",
        "nbytes": storage.nbytes,
        "device": storage.device,
        "state": storage.state,
    }


def _comparison_json(comparison: Comparison | None) -> dict[str, Any] | None:
    if comparison is None:
        return None
    gap = comparison.max_difference
    return {
        "subject": comparison.subject,
        "tolerance": comparison.tolerance,
        "equal": comparison.equal,
        "max_difference": gap if gap is None or math.isfinite(gap) else None,
        "nan_fraction": comparison.nan_fraction,
    }
