"""All mutants of a few releases, judged in forked processes that share the index of a release."""

from __future__ import annotations

import gc
import json
import multiprocessing
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks.mutation.judge import Verdict, judged
from benchmarks.mutation.mutants import injected
from benchmarks.mutation.reach import reached
from benchmarks.mutation.rewrites import rewritten
from benchmarks.mutation.subjects import candidates, findings, index_of, name_of, subject_of, weight_names
from benchmarks.released import folder_of, package_of
from rebindlint.execution.run import PROTOCOLS, execute_hook
from rebindlint.index import Hook, Index
from rebindlint.model import RebindlintError

__all__ = ["HOOKS", "QUOTA", "REWRITES", "Result", "campaign", "choose", "chosen"]

_T = TypeVar("_T")
HOOKS = Path(__file__).with_name("hooks.json")  # release -> names of the hooks that are mutated
# mutants of each hook, at most, by the place of the injected statement
QUOTA = {"hook": 4, "helper": 3, "callback": 3, "constructor": 3}
REWRITES = 6
TWINS = 3  # of so many mutants one is also tried without its hazard


@dataclass(frozen=True, slots=True)
class Result:
    """``noisy`` says of a hook what the linter finds in it as it was released; ``missing`` are hooks that are not in the tree."""

    hooks: tuple[str, ...]
    verdicts: tuple[Verdict, ...]
    twins: tuple[Verdict, ...]
    noisy: tuple[str, ...]
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Part:
    hook: str
    verdicts: tuple[Verdict, ...] = ()
    twins: tuple[Verdict, ...] = ()
    noisy: tuple[str, ...] = ()


def chosen() -> dict[str, list[str]]:
    """Raises RebindlintError when the list of hooks cannot be read."""
    try:
        found: dict[str, list[str]] = json.loads(HOOKS.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RebindlintError(f"{HOOKS.name}: {error}") from error
    return found


def campaign(releases: Sequence[str], *, seed: int, jobs: int, only: str = "") -> Result:
    """Raises RebindlintError when a release cannot be had, or nothing says which of its hooks are mutated."""
    parts: list[_Part] = []
    missing: list[str] = []
    for release in releases:
        names = {name for name in chosen().get(release, ()) if only in f"{release}/{name}"}
        if not names and not only:
            raise RebindlintError(f"{HOOKS.name} names no hooks of {release}; draw them with --choose")
        index, hooks = _hooks_of(release)
        wanted = [hook for hook in hooks if name_of(hook) in names]
        missing += sorted(f"{release}/{name}" for name in names - {name_of(hook) for hook in wanted})
        parts += _mapped(_mutated, index, wanted, (release, seed), jobs)
    return Result(
        tuple(part.hook for part in parts if part.verdicts),
        tuple(v for part in parts for v in part.verdicts),
        tuple(v for part in parts for v in part.twins),
        tuple(said for part in parts for said in part.noisy),
        tuple(missing),
    )


def choose(releases: Sequence[str], *, jobs: int) -> dict[str, list[str]]:
    """The hooks of each release in which the linter finds nothing."""
    found: dict[str, list[str]] = {}
    for release in releases:
        index, hooks = _hooks_of(release)
        clean = _mapped(_is_clean, index, hooks, (release, 0), jobs)
        found[release] = sorted(name_of(hook) for hook, is_clean in zip(hooks, clean, strict=True) if is_clean)
    return found


def _hooks_of(release: str) -> tuple[Index, list[Hook]]:
    index = index_of(folder_of(release), package_of(release))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the parser, about the released code
        return index, candidates(index)


_shared: tuple[Index, Sequence[Hook], tuple[str, int], frozenset[str]] | None = None


def _mapped(
    work: Callable[[int], _T], index: Index, hooks: Sequence[Hook], settings: tuple[str, int], jobs: int
) -> list[_T]:
    global _shared
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 12_000))
    _shared = (index, hooks, settings, weight_names(index))
    numbers = range(len(hooks))
    if jobs < 2 or "fork" not in multiprocessing.get_all_start_methods():
        return [work(number) for number in numbers]
    gc.collect()
    gc.freeze()
    try:
        with multiprocessing.get_context("fork").Pool(jobs) as pool:
            return pool.map(work, numbers, chunksize=1)
    finally:
        gc.unfreeze()
        _shared = None


def _mutated(number: int) -> _Part:
    assert _shared is not None
    index, hooks, (release, seed), weights = _shared
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        subject = subject_of(index, release, hooks[number], weights)
        if subject is None:
            return _Part(f"{release}/{name_of(hooks[number])}")
        paths = reached(index, subject)
        verdicts, twins = [], []
        for position, (mutant, twin) in enumerate(injected(index, subject, paths, seed, QUOTA)):
            verdicts.append(judged(index, mutant))
            if twin is not None and position % TWINS == 0:
                twins.append(judged(index, twin))
        verdicts.extend(judged(index, mutant) for mutant in rewritten(index, subject, paths, seed, REWRITES))
        found = findings(index, subject.hook)
    gc.collect()
    noisy = tuple(f"{subject.name}: {d.severity} {d.code} {d.attribute} {d.place}" for d in found)
    return _Part(subject.name, tuple(verdicts), tuple(twins), noisy)


def _is_clean(number: int) -> bool:
    assert _shared is not None
    index, hooks, (release, _), weights = _shared
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if subject_of(index, release, hooks[number], weights) is None:
            return False
        return not findings(index, hooks[number]) and _reloads(index, hooks[number])


def _reloads(index: Index, hook: Hook) -> bool:
    """Whether weights can be loaded again after the hook: where the loader refuses, nothing in the hook is a hazard."""
    refused: list[bool] = []
    execute_hook(index, hook, PROTOCOLS, lambda outcome, _: refused.append(outcome.unloadable))
    return not any(refused)
