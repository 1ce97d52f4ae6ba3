"""# stale-replay (RT102)

## What it does

Reports that after the reload the replayed step and the eager step give different results on the same inputs.

## Why is this bad

This is what users of the engine see: the graph answers with old weights, or with a mixture of old and new
ones. The tensors that were rebound or no longer exist are named as suspects.

Before the reload replay and eager run agreed on changed values too (the self-test), so the reload is the
cause.

## Example

A hook rebinds a derived weight while the weight itself is reloaded in place: eager runs use both new, the
graph uses one of each.

## Use instead

Write new values into the tensors that were there at capture (`copy_`), or capture again after every reload.

## Fix safety

There is no automatic fix for a difference; the RT101 findings beside it name lines.

## See also

RT101, RT103, RT104
"""

from __future__ import annotations

from typing import Final

from rebindlint.model import Severity
from rebindlint.runtime.codes import Code

CODE: Final = Code(
    "RT102",
    "stale-replay",
    Severity.ERROR,
    "replay",
    "after the reload the captured step gives another result than the eager one",
    ("RB101", "RB102", "RB103", "RB104", "RB105", "RB201", "RB202", "RB204"),
)
