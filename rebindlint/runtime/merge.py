"""The command ``rebindlint report``: the reports of all ranks as one. Needs neither torch nor vLLM."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from rebindlint.model import RebindlintError, Severity
from rebindlint.report.style import counted
from rebindlint.runtime.rank_files import RankFile, Record, read_ranks
from rebindlint.runtime.report import Report
from rebindlint.runtime.stored_findings import stored_finding
from rebindlint.runtime.vllm.settings import DEFAULT_OUT

__all__ = ["Merged", "Seen", "merge", "report_command", "show"]

_KNOWN_STATES: Final = ("running", "judged", "addresses", "failed")


@dataclass(frozen=True, slots=True)
class Seen:
    """Where a finding was made: by a rank, in one of its reloads."""

    engine: tuple[str, int]
    rank: int
    reload: int
    opened_by: str

    def to_json(self) -> Record:
        engine, data_parallel_rank = self.engine
        return {
            "engine": engine,
            "data_parallel_rank": data_parallel_rank,
            "rank": self.rank,
            "reload": self.reload,
            "opened_by": self.opened_by,
        }


@dataclass(frozen=True, slots=True)
class Merged:
    """``findings`` are those of all ranks, each once, with where it was made. ``failures`` say what could not be had:
    ranks that are missing, died or could not be read.
    """

    ranks: tuple[RankFile, ...]
    findings: tuple[tuple[Record, tuple[Seen, ...]], ...]
    failures: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """As of every command: 2 when something could not be had, 1 when there is more than notes, else 0."""
        if self.failures:
            return 2
        return int(any(record["severity"] != Severity.NOTE.value for record, _ in self.findings))

    def to_json(self) -> list[Record]:
        """One object a finding, with the keys of other reports and ``seen``."""
        return [{**record, "seen": [seen.to_json() for seen in places]} for record, places in self.findings]

    def text(self, *, verbose: bool = False) -> str:
        """For people: findings, then a line for each reload of each rank."""
        findings = tuple(stored_finding(record, _seen_line(places)) for record, places in self.findings)
        lines = Report(findings).text(verbose=verbose).splitlines()
        summary = lines.pop() if findings else "Nothing found."
        return "\n".join([*lines, *self._rank_lines(verbose), summary])

    def _rank_lines(self, verbose: bool) -> Iterator[str]:
        several = len({rank.engine for rank in self.ranks}) > 1
        for rank in self.ranks:
            name = _name(rank, several=several)
            for reload in rank.reloads:
                yield f"{name}: {_reload_line(reload)}"
                yield from (f"  compared: {line}" for line in reload["comparisons"] if verbose)
                yield from (f"  note: {line}" for line in reload["notes"])
            if missing := rank.record.get("missing_hook_points"):
                vllm = rank.record.get("versions", {}).get("vllm", "this release")
                yield f"{name}: vLLM {vllm} has no {', '.join(missing)}"


def merge(ranks: Iterable[RankFile], failures: Iterable[str] = ()) -> Merged:
    ranks = tuple(ranks)
    merged: dict[tuple[object, ...], tuple[Record, list[Seen]]] = {}
    for rank in ranks:
        for reload in rank.reloads:
            seen = Seen(rank.engine, rank.rank, reload["number"], reload["opened_by"])
            for record in reload["findings"]:
                merged.setdefault(_identity(record), (record, []))[1].append(seen)
    findings = sorted(merged.values(), key=lambda item: (item[0]["code"], item[0].get("tensor") or ""))
    return Merged(
        ranks,
        tuple((record, tuple(dict.fromkeys(places))) for record, places in findings),
        (*failures, *_missing(ranks), *_unfinished(ranks)),
    )


def _identity(record: Record) -> tuple[object, ...]:
    """One hazard is one finding on whichever rank: addresses and sizes of differences are the rank's own."""
    row = record["location"].get("row")
    about = record.get("tensor") or ("" if record["code"] == "RT102" else record["message"])
    return record["code"], record["severity"], about, record["filename"], row, tuple(record.get("reload") or ())


def _missing(ranks: tuple[RankFile, ...]) -> Iterator[str]:
    engines: dict[tuple[str, int], list[RankFile]] = {}
    for rank in ranks:
        engines.setdefault(rank.engine, []).append(rank)
    for (engine, _), members in engines.items():
        size = max(member.world_size for member in members)
        absent = sorted(set(range(size)) - {member.rank for member in members})
        if absent:
            which = f"rank{'s' if len(absent) > 1 else ''} {_ranges(absent)} of {size}"
            yield f"{which} wrote no report" + (f" (engine {engine})" if len(engines) > 1 else "")


def _unfinished(ranks: tuple[RankFile, ...]) -> Iterator[str]:
    several = len({rank.engine for rank in ranks}) > 1
    for rank in ranks:
        name = _name(rank, several=several)
        for reload in rank.reloads:
            if reload["state"] == "running":
                yield f"{name} did not get through reload {reload['number']} ({reload['opened_by']})"
            elif reload["state"] not in _KNOWN_STATES:
                yield f"{name} left reload {reload['number']} in an unknown state ({reload['state']})"
        yield from (f"{name}: {problem}" for problem in rank.record["problems"])
    if ranks and not any(rank.reloads for rank in ranks):
        yield "no reload was seen"


def _name(rank: RankFile, *, several: bool) -> str:
    engine, data_parallel_rank = rank.engine
    name = f"rank {rank.rank} of {rank.world_size}"
    if int(rank.record.get("data_parallel_size") or 1) > 1:
        name += f", data-parallel rank {data_parallel_rank}"
    return f"engine {engine}, {name}" if several else name


def _reload_line(reload: Record) -> str:
    counts = {s: sum(f["severity"] == s.value for f in reload["findings"]) for s in Severity}
    found = ", ".join(counted(count, s.value) for s, count in counts.items() if count) or "nothing found"
    how = {
        "judged": "judged",
        "addresses": "judged by addresses alone",
        "failed": f"raised {reload['error']}",
        "running": "not finished",
    }.get(reload["state"], reload["state"])
    times = f"; {reload.get('seconds', 0):.3g} s, and {reload.get('own_seconds', 0):.3g} s to watch and judge"
    return f"reload {reload['number']} ({reload['opened_by']}) {how}: {found}{times}"


def _ranges(numbers: Iterable[int]) -> str:
    """``0-2, 5`` for 0, 1, 2, 5."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _seen_line(places: tuple[Seen, ...]) -> str:
    engines = {seen.engine: [s for s in places if s.engine == seen.engine] for seen in places}
    parts = []
    for (engine, data_parallel_rank), own in engines.items():
        ranks, reloads = {s.rank for s in own}, {s.reload for s in own}
        part = f"rank{'s' if len(ranks) > 1 else ''} {_ranges(ranks)}"
        part += f" in reload{'s' if len(reloads) > 1 else ''} {_ranges(reloads)}"
        if len(engines) > 1:
            part += f" of engine {engine}" + (
                f" (data-parallel rank {data_parallel_rank})" if data_parallel_rank else ""
            )
        parts.append(part)
    return "seen by " + "; ".join(parts)


@click.command(
    name="report",
    context_settings={"help_option_names": ["-h", "--help"]},
    short_help="Merge the reports of an engine's ranks.",
)
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path), default=Path(DEFAULT_OUT))
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--verbose", "-v", is_flag=True, help="Show notes and comparisons in full.")
@click.pass_context
def report_command(ctx: click.Context, folder: Path, output_format: str, verbose: bool) -> None:
    """Merge the reports that the ranks of an engine left in DIR (rebindlint-reports by default).

    Exit codes: 0 nothing found, 1 findings, 2 ranks are missing, died or left a report that cannot be read.
    """
    try:
        ranks, failures = read_ranks(folder)
    except RebindlintError as error:
        click.echo(f"rebindlint: {error}", err=True)
        ctx.exit(2)
    if not ranks and not failures:
        failures = [f"{folder}: no reports of ranks in there"]
    merged = merge(ranks, failures)
    show(merged, output_format, verbose=verbose, err=False)
    ctx.exit(merged.exit_code)


def show(merged: Merged, output_format: str, *, verbose: bool, err: bool) -> None:
    """Failures go to standard error, one line each, the rest there too with ``err``."""
    for failure in merged.failures:
        sys.stderr.write(f"rebindlint: {failure}\n")
    if output_format == "json":
        click.echo(json.dumps(merged.to_json(), indent=2, ensure_ascii=False), err=err)
    elif merged.ranks:
        click.echo(merged.text(verbose=verbose), err=err)
