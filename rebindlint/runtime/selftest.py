"""The self-test before any judgement: does the replay really do what the step does?

The step is run eagerly twice (it must repeat itself), replayed (must agree), then the values that it reads are
changed in place and both are run again (must agree, and must differ from before). Whatever the dispatcher cannot see
(compiled kernels, numpy, other threads) fails here, so that a later agreement of replay and eager run means
something.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch

from rebindlint.runtime.capture import Capture, NotReplayable, first_line
from rebindlint.runtime.compare import Tolerance, compare, copies, tensors_in
from rebindlint.runtime.recorder import External
from rebindlint.runtime.storages import SavedBytes, digest, may_be_changed, storage_bytes

__all__ = ["RandomState", "Runs", "SelfTest", "note_undeclared_writes", "self_test"]

_STATE_BUDGET: Final = 1 << 28  # bytes of written storages that are put back before each run
_CHANGE_BUDGET: Final = 1 << 26  # bytes of values that are changed
_CHANGEABLE: Final = frozenset(
    dtype
    for name in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2")
    if (dtype := getattr(torch, name, None)) is not None
)


@dataclass(frozen=True, slots=True)
class SelfTest:
    """``tolerance`` is what replay and eager run agreed within; ``reason`` is empty when the test was passed."""

    passed: bool
    reason: str
    tolerance: Tolerance
    changed: int = 0  # storages whose values were changed


class Runs:
    """Repeatable runs of one step, eager and replayed.

    Before each run the random generators and the storages that the step writes (up to a budget) are put back, so that
    runs differ only by what is under test. Outputs, then written storages, are returned as copies.
    """

    def __init__(self, step: Callable[[], Any], capture: Capture) -> None:
        self.step = step
        self.capture = capture
        self.state = _within_budget([e for e in capture.externals.values() if e.written], _STATE_BUDGET)
        self._saved = SavedBytes(e.tensor for e in self.state)
        self._random = RandomState()

    def reset(self) -> None:
        self._saved.restore()
        self._random.restore()

    def eager(self) -> list[torch.Tensor]:
        """Raises what the step raises."""
        self.reset()
        with torch.no_grad():
            result = self.step()
        return self._copied(tensors_in(result))

    def replayed(self) -> list[torch.Tensor]:
        """Raises NotReplayable."""
        if self.capture.moved():
            raise NotReplayable(
                "memory that the step holds was resized or released, replaying would touch foreign memory"
            )
        self.reset()
        self.capture.replay()
        return self._copied(self.capture.outputs)

    def _copied(self, outputs: list[torch.Tensor]) -> list[torch.Tensor]:
        with torch.inference_mode():
            return copies(outputs) + [e.tensor.clone() for e in self.state]


def note_undeclared_writes(step: Callable[[], Any], capture: Capture, limit: int) -> None:
    """Run the step once more and mark what it changes without an operator saying so (running statistics, kernels that
    forgot to).

    Storages up to ``limit`` bytes are looked at. Raises what the step raises.
    """
    silent = [e for e in capture.externals.values() if not e.written]
    before = [_digest(e, limit) for e in silent]
    with torch.no_grad():
        step()
    for external, old in zip(silent, before, strict=True):
        external.changes = old != _digest(external, limit)


def _digest(external: External, limit: int) -> str | None:
    with torch.inference_mode():
        return digest(storage_bytes(external.tensor.untyped_storage()), limit)


class RandomState:
    """The random generators of the host and of every CUDA device as they were at one moment."""

    def __init__(self) -> None:
        self._cpu = torch.get_rng_state()
        initialised: Any = torch.cuda.is_initialized
        self._cuda = torch.cuda.get_rng_state_all() if initialised() else []

    def restore(self) -> None:
        torch.set_rng_state(self._cpu)
        if self._cuda:
            torch.cuda.set_rng_state_all(self._cuda)


def _within_budget(externals: list[External], budget: int) -> list[External]:
    taken, left = [], budget
    for external in externals:
        if external.nbytes <= left:
            taken.append(external)
            left -= external.nbytes
    return taken


def self_test(runs: Runs, tolerance: Tolerance | None = None, constants: Collection[int] = ()) -> SelfTest:
    """``constants`` are numbers of storages whose values are not changed, because the step makes them anew each time.
    With ``tolerance`` None bits must agree, or, where kernels do not repeat themselves bit for bit, a few units in
    the last place.
    """
    wanted = tolerance or Tolerance()
    try:
        result = _self_test(runs, wanted, constants)
        if not result.passed and tolerance is None and result.tolerance == wanted:
            loose = _last_places(runs.capture.outputs)
            second = _self_test(runs, loose, constants)
            return second if second.passed else result
        return result
    except NotReplayable as error:
        return SelfTest(False, str(error), wanted)
    except Exception as error:  # the host's step: it ran before, on the values that are put back by now
        return SelfTest(False, f"the step failed on changed values: {first_line(error)}", wanted)
    finally:
        runs.reset()


def _self_test(runs: Runs, tolerance: Tolerance, constants: Collection[int]) -> SelfTest:
    first, second = runs.eager(), runs.eager()
    if not first:
        return SelfTest(False, "the step gives no tensor and writes none, so there is nothing to compare", tolerance)
    if not compare(first, second, tolerance).equal:
        return SelfTest(False, "two eager runs of the step differ, so a replay cannot be judged", tolerance)
    outcome = compare(first, runs.replayed(), tolerance)
    if not outcome.equal:
        return SelfTest(False, f"replay and eager run differ before any reload ({outcome.gap})", tolerance)
    candidates = [e for e in _changeable(runs.capture) if e.number not in constants]
    for factor, shift in ((0.25, 0.0), (0.25, 0.25)):
        with _changed(candidates, factor, shift):
            eager, replayed = runs.eager(), runs.replayed()
        outcome = compare(eager, replayed, tolerance)
        if not outcome.equal:
            text = f"the replay misses part of the step's work: with changed values it differs from the eager run ({outcome.gap})"
            return SelfTest(False, text, tolerance, len(candidates))
        if not compare(first, eager, Tolerance()).equal:
            return SelfTest(True, "", tolerance, len(candidates))
    text = (
        "changing the floating-point values that the step reads does not change its result, so a replay proves nothing"
    )
    return SelfTest(False, text, tolerance, len(candidates))


def _changeable(capture: Capture) -> list[External]:
    """Storages read as one floating-point type, in the order of their first use: early ones reach all later
    operators.
    """
    floats = [
        e
        for e in capture.externals.values()
        if e.read and e.nbytes and e.tensor.dtype in _CHANGEABLE and len({use.layout.dtype for use in e.uses}) == 1
        if may_be_changed(e.tensor)
    ]
    return _within_budget(floats, _CHANGE_BUDGET)


@contextlib.contextmanager
def _changed(externals: list[External], factor: float, shift: float) -> Iterator[None]:
    """Scale each element by its own factor near 1 (and shift it): signs stay, sums and norms do not cancel it."""
    saved = SavedBytes(e.tensor for e in externals)
    try:
        with torch.inference_mode():
            for external in externals:
                flat = _whole(external.tensor)
                wave = torch.sin(torch.arange(flat.numel(), device=flat.device, dtype=torch.float32) * 1.3 + 0.7)
                wide = flat.to(torch.complex128 if flat.is_complex() else torch.float64)
                flat.copy_((wide * (1 + factor * wave) + shift * wave).to(flat.dtype))
        yield
    finally:
        saved.restore()


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    storage = tensor.untyped_storage()
    usable = storage.nbytes() // tensor.element_size()
    return torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(storage, 0, (usable,), (1,))


def _last_places(outputs: list[torch.Tensor]) -> Tolerance:
    floats = [t for t in outputs if t.is_floating_point() and t.numel()]
    if not floats:
        return Tolerance()
    eps = max(torch.finfo(t.dtype).eps for t in floats)
    scale = max(float(t.to(torch.float64).nan_to_num(0, 0, 0).abs().max()) for t in floats)
    return Tolerance(rtol=16 * eps, atol=4 * eps * max(scale, 1e-30))
