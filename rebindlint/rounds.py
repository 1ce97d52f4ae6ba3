"""Fixes in rounds: apply, analyse again, until nothing changes. What does not help is put back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from rebindlint.cache import Analysis
from rebindlint.model import Diagnostic
from rebindlint.texts import Texts

__all__ = ["Settled", "fix_in_rounds"]

_ROUNDS = 8
_Finding = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Settled:
    """``analysis`` speaks of the fixed texts, ``found`` is what it leaves; the fixes of ``refused`` were put back."""

    analysis: Analysis
    found: list[Diagnostic]
    fixed: tuple[Diagnostic, ...] = ()
    refused: tuple[Diagnostic, ...] = ()


def fix_in_rounds(
    texts: Texts,
    analysis: Analysis,
    *,
    analyse_again: Callable[[Analysis, set[str]], Analysis],
    reported: Callable[[Analysis], list[Diagnostic]],
    may_fix: Callable[[Diagnostic], bool],
) -> Settled:
    """Changes ``texts`` in memory only. ``analyse_again`` gets the last analysis and the files that changed since.

    A round after which a finding is still there although it was fixed, or another one of the same tensor instead, is taken
    back, and that fix is not tried again: it would be applied on top of itself, or does not keep what it promises.
    """
    from rebindlint.fix import apply_fixes  # late: it imports LibCST

    found = reported(analysis)
    fixed: list[Diagnostic] = []
    refused: set[_Finding] = set()
    for _ in range(_ROUNDS):
        applied = apply_fixes([d for d in found if may_fix(d) and _finding(d) not in refused], texts.read)
        refused.update(map(_finding, applied.refused))
        if not applied.texts:
            break
        before = {shown: texts.read(shown) for shown in applied.texts}
        texts.change(applied.texts)
        analysis_after = analyse_again(analysis, set(applied.texts))
        found_after = reported(analysis_after)
        useless = _still_there(applied.fixed, found, found_after)
        useless |= _exchanged(applied.fixed, analysis.diagnostics, analysis_after.diagnostics)  # selected or not
        if useless:
            texts.change(before)
            refused |= useless
        else:
            analysis, found = analysis_after, found_after
            fixed += applied.fixed
    left = tuple(d for d in found if d.fix is not None and _finding(d) in refused)
    if left:
        diagnostics = tuple(_without_fix(d) if _finding(d) in refused else d for d in analysis.diagnostics)
        analysis = replace(analysis, diagnostics=diagnostics)
        found = reported(analysis)
    return Settled(analysis, found, tuple(fixed), left)


def _without_fix(diagnostic: Diagnostic) -> Diagnostic:
    """Kept in the analysis, and so in the cache: the next run does not try again."""
    if diagnostic.fix is None:
        return diagnostic
    return replace(
        diagnostic, fix=None, help=f"{diagnostic.help or 'mend it by hand'} (a fix was tried and did not help)"
    )


def _finding(diagnostic: Diagnostic) -> _Finding:
    """What stays the same when lines move."""
    return (diagnostic.place.filename, diagnostic.code, diagnostic.hook, diagnostic.attribute)


def _still_there(
    fixed: Iterable[Diagnostic], before: Iterable[Diagnostic], after: Iterable[Diagnostic]
) -> set[_Finding]:
    """The findings that should have gone with their fix and did not."""
    fixed = list(fixed)
    expected = Counter(map(_finding, before))
    expected.subtract(map(_finding, fixed))
    left = Counter(map(_finding, after))
    return {finding for finding in map(_finding, fixed) if left[finding] > expected[finding]}


def _exchanged(fixed: Iterable[Diagnostic], before: Iterable[Diagnostic], after: Iterable[Diagnostic]) -> set[_Finding]:
    """The findings that went with their fix, but left one of another kind of the same cell, or of what it holds, that nothing fixes."""
    known = {*map(_finding, before)}
    new = [d for d in after if d.fix is None and _finding(d) not in known]
    return {
        _finding(done)
        for done in fixed
        if done.attribute
        and any(
            one.hook == done.hook
            and (
                one.attribute == done.attribute
                or one.attribute.startswith((f"{done.attribute}.", f"{done.attribute}["))
            )
            for one in new
        )
    }
