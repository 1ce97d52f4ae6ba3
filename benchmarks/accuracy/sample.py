"""Draw a sample of findings and of writes that were not flagged, to be labelled by a reader.

Usage: python -m benchmarks.accuracy.sample TREE [--seed N] [--findings N] [--unflagged N] [--all-errors]

Adds entries without a label to labels/TREE.json; entries that are there already stay as they are and count.
"""

from __future__ import annotations

import argparse
import random
import sys
from typing import Any

from benchmarks.accuracy.labels import Label, load, store
from benchmarks.accuracy.writes import is_flagged, writes_of
from benchmarks.released import findings_of, folder_of, package_of
from rebindlint.model import RebindlintError

__all__ = ["draw", "label_of", "main"]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.sample", description=__doc__.split("\n")[0])
    parser.add_argument("tree", help="a release such as vllm-0.33.0")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--findings", type=int, default=60, help="errors and warnings to draw, all where there are fewer"
    )
    parser.add_argument("--unflagged", type=int, default=60, help="writes without a finding to draw")
    parser.add_argument(
        "--all-errors", action="store_true", help="all errors, and the findings asked for from the warnings"
    )
    asked = parser.parse_args(arguments)
    try:
        findings = findings_of(asked.tree)
        known = load(asked.tree)
        left = [w for w in writes_of(folder_of(asked.tree), package_of(asked.tree)) if not is_flagged(w, findings)]
        new = [
            *draw(
                [label_of(asked.tree, finding) for finding in findings],
                known,
                asked.findings,
                asked.seed,
                all_errors=asked.all_errors,
            ),
            *draw(
                [Label(asked.tree, "unflagged", w.path, w.line, w.attribute, w.hook) for w in left],
                known,
                asked.unflagged,
                asked.seed,
            ),
        ]
        path = store(asked.tree, [*known, *new])
    except (OSError, RebindlintError) as error:
        print(f"sample: {error}", file=sys.stderr)
        return 2
    print(f"{path.name}: {len(new)} entries more to label, {len(known) + len(new)} in all")
    return 0


def label_of(tree: str, finding: dict[str, Any]) -> Label:
    """A finding of the linter's JSON output as an entry that waits for its label."""
    return Label(
        tree,
        "finding",
        finding["filename"],
        finding["location"]["row"],
        finding["attribute"] or "",
        finding["hook"] or "",
        finding["code"],
        finding["severity"],
    )


def draw(
    population: list[Label], known: list[Label], wanted: int, seed: int, *, all_errors: bool = False
) -> list[Label]:
    """What has to be added to ``known`` for ``wanted`` entries of the population; the same for the same seed."""
    there = {(label.kind, *label.place, label.code) for label in known}
    order = sorted({(label.kind, *label.place, label.code): label for label in population}.items())
    shuffled = random.Random(seed).sample(order, len(order))
    always = [entry for entry in shuffled if all_errors and entry[1].severity == "error"]
    rest = [entry for entry in shuffled if not (all_errors and entry[1].severity == "error")]
    present = sum(1 for key, _ in rest if key in there)
    new = [label for key, label in always if key not in there]
    new += [label for key, label in rest if key not in there][: max(wanted - present, 0)]
    return new


if __name__ == "__main__":
    sys.exit(main())
