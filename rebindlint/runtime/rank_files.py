"""Reading the reports that ranks left. Needs neither torch nor vLLM."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rebindlint.model import RebindlintError
from rebindlint.runtime.vllm.ranks import FORMAT, NAME

__all__ = ["RankFile", "Record", "read_ranks"]

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RankFile:
    """The report of one rank as it was read."""

    path: Path
    record: Record

    @property
    def engine(self) -> tuple[str, int]:
        """What ranks are counted within."""
        return str(self.record["engine"]), int(self.record["data_parallel_rank"])

    @property
    def rank(self) -> int:
        return int(self.record["rank"])

    @property
    def world_size(self) -> int:
        return int(self.record["world_size"])

    @property
    def reloads(self) -> list[Record]:
        reloads: list[Record] = self.record["reloads"]
        return reloads


def read_ranks(folder: Path, run: str = "") -> tuple[list[RankFile], list[str]]:
    """The rank reports in a folder, and one line for each that cannot be read. With ``run`` only those of that run.

    Raises RebindlintError when the folder cannot be read.
    """
    if not folder.is_dir():
        raise RebindlintError(f"{folder}: no such folder" if not folder.exists() else f"{folder}: not a folder")
    found, failures = [], []
    try:
        paths = sorted(folder.glob(NAME))
    except OSError as error:
        raise RebindlintError(f"{folder}: {error.strerror or error}") from error
    for path in paths:
        try:
            rank = RankFile(path, _read(path))
        except RebindlintError as error:
            failures.append(f"{path}: {error}")
            continue
        if not run or rank.record.get("run") == run:
            found.append(rank)
    return sorted(found, key=lambda rank: (rank.record["started"], *rank.engine, rank.rank)), failures


def _read(path: Path) -> Record:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RebindlintError(str(error.strerror or error)) from error
    except ValueError as error:  # also undecodable bytes
        raise RebindlintError(f"broken report: {error}") from error
    if not isinstance(record, dict) or not isinstance(record.get("format"), int):
        raise RebindlintError("no report of a rank")
    if record["format"] != FORMAT:
        raise RebindlintError(f"written in format {record['format']}, this version reads format {FORMAT}")
    _check(record, engine=str, rank=int, world_size=int, data_parallel_rank=int, started=(int, float), reloads=list)
    record.setdefault("problems", [])
    for reload in record["reloads"]:
        _check(reload, number=int, opened_by=str, state=str, findings=list, comparisons=list, notes=list, error=str)
        for finding in reload["findings"]:
            _check(finding, code=str, severity=str, message=str, filename=str, location=dict)
    return record


def _check(record: object, **types: type | tuple[type, ...]) -> None:
    for key, kind in types.items():
        if not isinstance(record, dict) or not isinstance(record.get(key), kind):
            raise RebindlintError(f"broken report: no {key}")
