"""The report for programs: a list of objects with ruff's key names and our own."""

from __future__ import annotations

import json
from collections.abc import Iterable

from rebindlint.model import Diagnostic, Fix, Position

__all__ = ["as_record", "render"]

Record = dict[str, object]


def render(diagnostics: Iterable[Diagnostic]) -> str:
    """A JSON list, also when there is nothing to say. Rows and columns count from 1; the end is exclusive."""
    return json.dumps([as_record(diagnostic) for diagnostic in diagnostics], indent=2) + "\n"


def as_record(diagnostic: Diagnostic) -> Record:
    return {
        "code": diagnostic.code,
        "name": diagnostic.name,
        "message": diagnostic.message,
        "severity": diagnostic.severity.value,
        "filename": diagnostic.place.filename,
        "location": _location(diagnostic.place.start),
        "end_location": _location(diagnostic.place.end),
        "attribute": diagnostic.attribute or None,
        "hook": diagnostic.hook or None,
        "reload": [protocol.value for protocol in diagnostic.reload],
        "trace": [{"filename": frame.filename, "row": frame.row, "text": frame.text} for frame in diagnostic.trace],
        "fix": None if diagnostic.fix is None else _fix(diagnostic.fix),
        "url": None,
    }


def _fix(fix: Fix) -> Record:
    return {
        "applicability": fix.applicability.value,
        "message": fix.message,
        "edits": [
            {
                "content": edit.content,
                "location": _location(edit.place.start),
                "end_location": _location(edit.place.end),
            }
            for edit in fix.edits
        ],
    }


def _location(position: Position) -> Record:
    return {"row": position.row, "column": position.column}
