"""Labels joined with what the linter says now: precision, an estimate of recall, and what no longer fits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.accuracy.labels import Label
from benchmarks.accuracy.sample import label_of
from benchmarks.accuracy.writes import Write, is_flagged

__all__ = ["Measured", "Share", "is_right", "measure"]

_RIGHT = {"error": ("hazard",), "warning": ("hazard", "other-protocol")}


@dataclass(frozen=True, slots=True)
class Share:
    """``right`` of ``decided``; ``undecided`` could not be told and are in neither."""

    right: int = 0
    decided: int = 0
    undecided: int = 0

    @property
    def value(self) -> float | None:
        return self.right / self.decided if self.decided else None

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of Wilson: what the share of the whole population may be, by this sample."""
        n, z = self.decided, 1.96
        if not n:
            return 0.0, 1.0
        share = self.right / n
        middle = share + z * z / (2 * n)
        reach = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        scale = 1 + z * z / n
        low, high = (middle - reach) / scale, (middle + reach) / scale
        return (low if self.right else 0.0), (high if self.right < n else 1.0)


@dataclass(frozen=True, slots=True)
class Measured:
    """``now`` is by the findings of this run and their present severity, ``sampled`` by those when the samples were drawn."""

    tree: str
    found: dict[str, int]
    now: dict[str, Share]
    sampled: dict[str, Share]
    unflagged: int
    missed: Share
    missed_own: Share
    recall: float | None
    recall_at_least: float | None
    wrong: list[Label] = field(default_factory=list)
    gone: list[Label] = field(default_factory=list)
    demoted: list[Label] = field(default_factory=list)
    misses: list[Label] = field(default_factory=list)
    caught: list[Label] = field(default_factory=list)
    lost_places: list[Label] = field(default_factory=list)
    unlabelled: list[Label] = field(default_factory=list)
    new_errors: list[Label] = field(default_factory=list)


def is_right(label: str, severity: str) -> bool:
    """An error claims the hazard under the tree's own protocol, a warning under the protocols that it names."""
    return label in _RIGHT.get(severity, ())


def measure(tree: str, labels: Sequence[Label], findings: list[dict[str, Any]], writes: Sequence[Write]) -> Measured:
    """``findings`` without notes; ``writes``: all of the tree's hooks, flagged or not."""
    present = [label_of(tree, finding) for finding in findings]
    on_findings = [label for label in labels if label.kind == "finding"]
    pairs, gone = _join(on_findings, present)
    done = [(label, severity) for label, severity in pairs if label.label]
    missed, caught, lost, left = _unflagged(labels, findings, writes)
    found = Counter(finding["severity"] for finding in findings)
    now = {s: _share([label for label, severity in done if severity == s], s) for s in _RIGHT}
    labelled_places = {label.place for label, _ in done}
    complete = any(label.severity == "error" for label in on_findings)
    regressions = [label for label in gone if label.label == "hazard" or _is_lost_warning(label)]
    still = [label for label in missed if label.label]
    share, own = _share_missed(still, "missed", "other-protocol"), _share_missed(still, "missed")
    recall, lowest = _recall(found, now, share, left, len(regressions))
    return Measured(
        tree=tree,
        found=dict(found),
        now=now,
        sampled={s: _share([x for x in on_findings if x.severity == s and x.label], s) for s in _RIGHT},
        unflagged=left,
        missed=share,
        missed_own=own,
        recall=recall,
        recall_at_least=lowest,
        wrong=[
            label for label, severity in done if label.label != "cannot-tell" and not is_right(label.label, severity)
        ],
        gone=gone,
        demoted=[
            label for label, severity in done if label.label == "hazard" and severity != label.severity == "error"
        ],
        misses=[label for label in still if label.label in ("missed", "other-protocol")],
        caught=caught,
        lost_places=lost,
        unlabelled=[label for label in labels if not label.label],
        new_errors=[x for x in present if complete and x.severity == "error" and x.place not in labelled_places],
    )


def _is_lost_warning(label: Label) -> bool:
    return label.label == "other-protocol" and label.severity == "warning"


def _join(labels: Sequence[Label], present: Sequence[Label]) -> tuple[list[tuple[Label, str]], list[Label]]:
    """Each label with the severity of its finding now, and those whose finding is gone.

    A finding that changed its code, or the spelling of the object before the last name, is the same finding.
    """
    exact = {(*finding.place, finding.code): finding for finding in present}
    loose: dict[tuple[object, ...], Label] = {}
    for finding in present:
        loose.setdefault((finding.path, finding.line, _last_name(finding.attribute)), finding)
    pairs: list[tuple[Label, str]] = []
    gone: list[Label] = []
    for label in labels:
        same = exact.get((*label.place, label.code))
        now = same or loose.get((label.path, label.line, _last_name(label.attribute)))
        if now is None:
            gone.append(label)
        else:
            pairs.append((label, now.severity))
    return pairs, gone


def _last_name(attribute: str) -> str:
    return attribute.rpartition(".")[2]


def _unflagged(
    labels: Sequence[Label], findings: list[dict[str, Any]], writes: Sequence[Write]
) -> tuple[list[Label], list[Label], list[Label], int]:
    """Sampled writes that are still silent, that are flagged now, that the tree no longer has; and the silent writes in all."""
    flagged = {write.place: is_flagged(write, findings) for write in writes}
    sampled = [label for label in labels if label.kind == "unflagged"]
    silent = [label for label in sampled if flagged.get(label.place) is False]
    caught = [label for label in sampled if flagged.get(label.place)]
    lost = [label for label in sampled if label.place not in flagged]
    return silent, caught, lost, sum(not known for known in flagged.values())


def _share(labels: Sequence[Label], severity: str) -> Share:
    decided = [label for label in labels if label.label != "cannot-tell"]
    return Share(sum(is_right(x.label, severity) for x in decided), len(decided), len(labels) - len(decided))


def _share_missed(sampled: Sequence[Label], *labels: str) -> Share:
    undecided = sum(label.label == "cannot-tell" for label in sampled)
    return Share(sum(label.label in labels for label in sampled), len(sampled) - undecided, undecided)


def _recall(
    found: Counter[str], now: dict[str, Share], missed: Share, silent: int, regressions: int
) -> tuple[float | None, float | None]:
    """True findings among true findings and missed writes, both scaled from the samples; the second value takes the worst of the interval."""
    if not missed.decided:
        return None, None
    right = sum(found[severity] * (share.value or 0.0) for severity, share in now.items())
    if not right:
        return None, None
    likely = silent * (missed.value or 0.0) + regressions
    worst = silent * missed.interval[1] + regressions
    return right / (right + likely), right / (right + worst)
