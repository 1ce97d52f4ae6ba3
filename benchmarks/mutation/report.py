"""What a campaign came to: tables by operator and by place, the survivors and why they survive."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from benchmarks.mutation.campaign import Result
from benchmarks.mutation.judge import Verdict

__all__ = ["RATE", "is_good", "reason_of", "report"]

RATE = 0.97
REASONS = Path(__file__).with_name("survivors.json")


@cache
def _reasons() -> dict[str, str]:
    found: dict[str, str] = json.loads(REASONS.read_text(encoding="utf-8")) if REASONS.is_file() else {}
    return found


def reason_of(verdict: Verdict) -> str:
    """Why a mutant survives: by its id, empty where nobody has said."""
    return _reasons().get(verdict.id, "")


def is_good(result: Result) -> bool:
    left = [v for v in result.verdicts if not v.killed]
    return (
        bool(result.verdicts)
        and len(left) <= (1 - RATE) * len(result.verdicts)
        and all(reason_of(v) for v in left)
        and not result.noisy
        and not result.missing
        and not _false_alarms(result)
    )


def report(result: Result) -> str:
    every = result.verdicts
    lines = _table("operator", every, lambda v: v.kind)
    lines += ["", *_table("place", every, lambda v: v.place)]
    lines += ["", *_table("release", every, lambda v: v.hook.partition("/")[0]), ""]
    killed = sum(v.killed for v in every)
    rate = f"{killed / len(every):.1%}" if every else "nothing"
    errors = sum(v.severity == "error" for v in every)
    lines.append(
        f"{len(every)} mutants of {len(set(result.hooks))} clean hooks, {killed} killed ({errors} as errors): {rate}"
    )
    loud = _false_alarms(result)
    noisy = sorted({said.partition(": ")[0] for said in result.noisy})
    lines.append(f"{len(result.hooks)} unmutated hooks, {len(noisy)} with findings" + (":" if noisy else ""))
    lines += [f"  {said}" for said in (*result.noisy, *(f"{name}: not in the tree" for name in result.missing))]
    lines.append(f"{len(result.twins)} twins without the hazard, {len(loud)} with findings" + (":" if loud else ""))
    lines += [f"  {v.id}\n    {v.severity} {v.code} {'; '.join(v.other)}" for v in loud]
    left = [v for v in every if not v.killed]
    lines.append(f"{len(left)} survivors" + (":" if left else ""))
    lines += [f"  {v.id}\n    {reason_of(v) or 'NOT EXPLAINED'}{_beside(v)}" for v in left]
    return "\n".join(lines)


def _false_alarms(result: Result) -> list[Verdict]:
    """Twins of whose own cell something is said. What else is found is the hook's own, on a path not taken before."""
    return [v for v in result.twins if v.killed or any("mutant_" in said for said in v.other)]


def _beside(verdict: Verdict) -> str:
    return f" (found instead: {'; '.join(verdict.other)})" if verdict.other else ""


def _table(title: str, verdicts: Iterable[Verdict], key: Callable[[Verdict], str]) -> list[str]:
    verdicts = list(verdicts)
    every, killed, errors = Counter(map(key, verdicts)), Counter(), Counter()  # type: ignore[var-annotated]
    for verdict in verdicts:
        killed[key(verdict)] += verdict.killed
        errors[key(verdict)] += verdict.severity == "error"
    lines = [f"{title:18} {'mutants':>8} {'killed':>7} {'errors':>7} {'rate':>7}"]
    lines += [f"{n:18} {every[n]:8} {killed[n]:7} {errors[n]:7} {killed[n] / every[n]:7.1%}" for n in sorted(every)]
    return lines
