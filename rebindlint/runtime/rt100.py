"""# not-verifiable (RT100)

## What it does

Says that the run could not prove anything, and why. It is an error, because silence would look like an
acquittal.

## Why is this bad

A replay is only worth something when it does what the step does. Before any judgement the captured step is
run eagerly twice, replayed, and run and replayed again on changed values. When these disagree, part of the
step is hidden from the capture: code compiled by `torch.compile`, kernels launched past the dispatcher,
numpy, or a value that was read back to the host (`.item()`, shapes that depend on values). A graph of such a
step would be wrong or could not be captured at all.

What does not need a capture is still reported: broken aliases, uninitialised memory, differences from a fresh
load.

## Example

```python
def step():
    hidden = model(x)
    return hidden * float(hidden.max())  # waits for a value: no graph can hold this
```

## Use instead

Capture the part that an engine captures: one forward on fixed inputs, without `torch.compile` (vLLM:
`enforce_eager=True` on a CPU), without reading values back. Warm up caches before capturing.

## Fix safety

There is no automatic fix.

## See also

RT102, RT104
"""

from __future__ import annotations

from typing import Final

from rebindlint.model import Severity
from rebindlint.runtime.codes import Code

CODE: Final = Code(
    "RT100",
    "not-verifiable",
    Severity.ERROR,
    "selftest",
    "the captured step could not be judged, so nothing is proven about it",
)
