"""Inject hazards into clean hooks of released trees and count those that the linter finds.

Usage: python -m benchmarks.mutation [RELEASE ...] [--seed N] [--jobs N] [--only TEXT] [--json FILE]
       python -m benchmarks.mutation --choose [RELEASE ...]

Exit status 0 when the kill rate is reached, every survivor is explained and the unmutated hooks are silent; 1 when not; 2 when a
release cannot be had.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks.mutation.campaign import HOOKS, campaign, choose
from benchmarks.mutation.report import is_good, report
from rebindlint.model import RebindlintError

RELEASES = ("vllm-0.33.0", "vllm-0.26.0")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutation", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("releases", nargs="*", metavar="RELEASE", default=RELEASES, help="such as vllm-0.33.0")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--only", default="", help="hooks whose name (release/module:Class.hook) holds this text")
    parser.add_argument("--json", type=Path, help="also write every verdict to this file")
    parser.add_argument("--choose", action="store_true", help="write the list of clean hooks anew, and mutate nothing")
    asked = parser.parse_args(arguments)
    started = time.perf_counter()
    try:
        if asked.choose:
            hooks = choose(asked.releases, jobs=asked.jobs)
            HOOKS.write_text(json.dumps(hooks, indent=1) + "\n", encoding="utf-8")
            print(f"{HOOKS.name}: {', '.join(f'{len(names)} hooks of {release}' for release, names in hooks.items())}")
            return 0
        result = campaign(asked.releases, seed=asked.seed, jobs=asked.jobs, only=asked.only)
        if asked.json is not None:
            asked.json.write_text(json.dumps(asdict(result), indent=1) + "\n", encoding="utf-8")
    except (OSError, RebindlintError) as error:
        print(f"mutation: {error}", file=sys.stderr)
        return 2
    print(report(result))
    print(f"\n{time.perf_counter() - started:.0f} s")
    return 0 if is_good(result) else 1


if __name__ == "__main__":
    sys.exit(main())
