"""Precision and recall of the linter on released trees, recomputed from the labels.

Usage: python -m benchmarks.accuracy [TREE ...] [--markdown]

Trees that are not at hand are downloaded. Exit status 0 when the bars hold (errors 95 % right, warnings 85 %, every
label given), 1 when one does not, 2 when something could not run.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from benchmarks.accuracy.labels import Label, labelled_trees, load
from benchmarks.accuracy.measure import Measured, Share, measure
from benchmarks.accuracy.writes import writes_of
from benchmarks.released import findings_of, folder_of, package_of
from rebindlint.model import RebindlintError

__all__ = ["BARS", "holds", "main", "markdown", "report"]

BARS = {"error": 0.95, "warning": 0.85}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__.split("\n")[0])
    parser.add_argument("trees", nargs="*", metavar="TREE", help="such as vllm-0.33.0 (default: all that have labels)")
    parser.add_argument("--markdown", action="store_true", help="one table instead of a report for each tree")
    asked = parser.parse_args(arguments)
    try:
        return _run(asked.trees or labelled_trees(), markdown_only=asked.markdown)
    except RebindlintError as error:
        print(f"accuracy: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader has seen enough (`make accuracy | head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2


def _run(trees: Sequence[str], *, markdown_only: bool) -> int:
    measured = []
    for tree in trees:
        if tree not in labelled_trees():
            raise RebindlintError(f"{tree} has no labels")
        writes = writes_of(folder_of(tree), package_of(tree))
        measured.append(measure(tree, load(tree), findings_of(tree), writes))
        if not markdown_only:
            print(report(measured[-1]), flush=True)
    if markdown_only:
        print(markdown(measured))
    return 0 if measured and all(holds(one) for one in measured) else 1


def holds(measured: Measured) -> bool:
    """Whether precision reaches the bars and nothing waits for a label."""
    reached = all((share.value or 0.0) >= BARS[severity] for severity, share in measured.now.items() if share.decided)
    return reached and not measured.unlabelled


def report(measured: Measured) -> str:
    lines = ["", measured.tree, "=" * len(measured.tree)]
    for severity, share in measured.now.items():
        lines.append(
            f"{severity}s: {measured.found.get(severity, 0)} now, precision {_shown(share)}"
            f" (bar {BARS[severity]:.0%}); when drawn {_shown(measured.sampled[severity])}"
        )
    silent = f"writes without a finding: {measured.unflagged}"
    if measured.missed.value is not None:
        own = measured.missed_own.right
        silent += f", of the sample missed {_shown(measured.missed)}, {own} of them under the tree's own protocol"
    lines.append(silent)
    if measured.recall is not None and measured.recall_at_least is not None:
        lines.append(f"recall, estimated: {measured.recall:.0%} (not below {measured.recall_at_least:.0%})")
    for title, labels in (
        ("wrong findings", measured.wrong),
        ("missed", measured.misses),
        ("hazards whose finding is gone", [x for x in measured.gone if x.label in ("hazard", "other-protocol")]),
        (
            "other labels whose finding is gone",
            [x for x in measured.gone if x.label not in ("hazard", "other-protocol")],
        ),
        ("hazards that were errors and are warnings now", measured.demoted),
        ("writes of the sample that are flagged now", measured.caught),
        ("writes that the tree no longer has", measured.lost_places),
        ("entries without a label", measured.unlabelled),
        ("errors without an entry", measured.new_errors),
    ):
        lines.extend(_listed(title, labels))
    return "\n".join(lines)


def markdown(measured: Sequence[Measured]) -> str:
    """The table that the README shows."""
    lines = [
        "| tree | errors | precision | warnings | precision | silent writes | missed in the sample | recall, estimated |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in measured:
        cells = [one.tree]
        for severity in BARS:
            cells += [str(one.found.get(severity, 0)), _shown(one.now[severity], interval=False)]
        own = f"{one.missed_own.right} under the own protocol"
        cells += [str(one.unflagged), f"{one.missed.right} of {one.missed.decided}, {own}"]
        cells.append("unknown" if one.recall is None else f"{one.recall:.0%}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _shown(share: Share, *, interval: bool = True) -> str:
    if share.value is None:
        return "unknown (no label)"
    text = f"{share.value:.1%} ({share.right} of {share.decided}"
    if interval:
        low, high = share.interval
        text += f", 95 % interval {low:.0%} to {high:.0%}"
    if share.undecided:
        text += f", {share.undecided} cannot be told"
    return text + ")"


def _listed(title: str, labels: Sequence[Label]) -> list[str]:
    if not labels:
        return []
    lines = [f"{title}: {len(labels)}"]
    for label in labels:
        said = f" [{label.label}] {label.reason}" if label.label else ""
        lines.append(f"  {label.path}:{label.line} {label.code} {label.attribute}{said}")
    return lines


if __name__ == "__main__":
    sys.exit(main())
