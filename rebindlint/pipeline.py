"""The stages in order: discover, index, execute, diagnose, propose fixes, select, suppress, fix, and again until stable."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, replace
from pathlib import Path

from rebindlint.cache import Analysis, Cache, result_key
from rebindlint.config import Config
from rebindlint.discover import Discovery, discover
from rebindlint.model import Applicability, Diagnostic, RebindlintError
from rebindlint.parse_errors import Unparsed, check_syntax, parse_error
from rebindlint.selection import is_selected, select
from rebindlint.suppress import apply_suppressions
from rebindlint.texts import Changed, Texts, write_source

__all__ = ["Outcome", "Request", "run"]

Progress = Callable[[int, int], None]
Finding = tuple[str, str, str, str]
_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Request:
    """What to lint and what to do with it.

    ``fix`` computes fixed texts, ``write`` puts them into the files (never standard input). ``affected`` also reports
    findings outside the given files whose call chain goes through one of them.
    """

    paths: tuple[str, ...]
    config: Config
    fix: bool = False
    unsafe: bool = False
    write: bool = True
    affected: bool = False
    cache: bool = True
    stdin_text: str | None = None
    stdin_filename: str | None = None
    cwd: Path | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """``diagnostics`` are left, ``fixed`` are gone with the texts in ``changed``; ``failures`` are one line each for
    what could not be done. ``read`` gives the present text of a linted file; ``refused`` is the number of findings whose fix was put back."""

    diagnostics: tuple[Diagnostic, ...]
    failures: tuple[str, ...]
    read: Callable[[str], str]
    fixed: tuple[Diagnostic, ...] = ()
    changed: tuple[Changed, ...] = ()
    files: int = 0
    hooks: int = 0
    refused: int = 0
    log: tuple[str, ...] = ()


def run(request: Request, progress: Progress | None = None) -> Outcome:
    """Lints, and fixes when asked. Raises RebindlintError only when nothing at all can be done."""
    discovery = discover(
        request.paths,
        request.config,
        stdin_text=request.stdin_text,
        stdin_filename=request.stdin_filename,
        cwd=request.cwd,
    )
    with warnings.catch_warnings():
        for about_the_linted_code in (SyntaxWarning, DeprecationWarning):
            warnings.simplefilter("ignore", about_the_linted_code)
        return _Run(request, discovery, progress).outcome()


class _Run:
    def __init__(self, request: Request, discovery: Discovery, progress: Progress | None) -> None:
        self._request = request
        self._config = request.config
        self._targets = discovery.targets
        self._failures = list(discovery.failures)
        self._progress = progress
        self._texts = Texts(discovery.context)
        self._cache = Cache.for_config(request.config) if request.cache else None
        self._log: list[str] = []
        self._refused: set[Finding] = set()

    def outcome(self) -> Outcome:
        analysis = self._recall_or_analyse()
        found = self._found(analysis)
        fixed: list[Diagnostic] = []
        if self._request.fix:
            analysis, found, fixed = self._fix(analysis, found)
        changed = self._texts.changed()
        if self._request.write and (changed or self._refused):
            self._write(changed, analysis)
        unreadable = [
            why.message for name, why in sorted(analysis.unparsed.items()) if why.row == 0 and name in self._targets
        ]
        return Outcome(
            diagnostics=tuple(found),
            failures=(*self._failures, *unreadable),
            read=self._texts.read,
            fixed=tuple(fixed),
            changed=changed,
            files=len(self._targets),
            hooks=analysis.hooks,
            refused=len(self._refused),
            log=tuple(self._log),
        )

    def _recall_or_analyse(self) -> Analysis:
        if self._cache is None:
            return self._with_syntax(self._analyse())
        key = result_key(self._texts.sources(), self._config)
        known = self._cache.load(key)
        analysis = self._with_syntax(known or self._analyse())
        if analysis is not known:
            self._cache.store(key, analysis)
        else:
            self._log.append(f"{analysis.hooks} hooks: result found in the cache")
        return analysis

    def _analyse(self) -> Analysis:
        """From sources to diagnostics with fixes attached; imported late, because LibCST is slow to import."""
        from rebindlint import fix, registry
        from rebindlint.check import diagnose
        from rebindlint.execution import execute_hooks
        from rebindlint.index import build_index

        index = build_index(self._texts.sources(), self._config)
        executed = execute_hooks(index, self._config, jobs=self._config.jobs, progress=self._progress)
        diagnostics = diagnose(executed.facts, registry.rules(), index, self._config)
        diagnostics = fix.propose(diagnostics, index, self._config, self._texts.read)
        self._log.append(f"{executed.hooks} hooks executed along {executed.executions} paths")
        refused = {shown: Unparsed(message, row, column) for shown, (row, column, message) in index.failures.items()}
        return Analysis((*diagnostics, *executed.notes), refused, hooks=executed.hooks)

    def _with_syntax(self, analysis: Analysis) -> Analysis:
        """The index parses only what a hook leads to; a target must not stay silent because it is broken elsewhere."""
        wanted = [s for s in self._texts.sources() if s.shown in self._targets and s.shown not in analysis.parsed]
        if not wanted:
            return analysis
        found = check_syntax(wanted, jobs=self._config.jobs)
        parsed = analysis.parsed | {source.shown for source in wanted}
        return replace(analysis, unparsed={**analysis.unparsed, **found}, parsed=parsed)

    def _found(self, analysis: Analysis) -> list[Diagnostic]:
        """What is to be reported: selected, not suppressed, and in the given files (or affected by them)."""
        unparsed = {name: why for name, why in analysis.unparsed.items() if why.row and name in self._targets}
        everything = [*analysis.diagnostics, *(parse_error(name, why) for name, why in unparsed.items())]
        kept = apply_suppressions(
            select(everything, self._config), self._texts.read, files=self._targets - unparsed.keys(), is_on=self._is_on
        )
        return sorted((d for d in select(kept, self._config) if self._is_reported(d)), key=lambda d: d.sort_key)

    def _is_on(self, code: str) -> bool:
        return is_selected(code, self._config)

    def _is_reported(self, diagnostic: Diagnostic) -> bool:
        if diagnostic.place.filename in self._targets:
            return True
        return self._request.affected and any(frame.filename in self._targets for frame in diagnostic.trace)

    def _fix(self, analysis: Analysis, found: list[Diagnostic]) -> tuple[Analysis, list[Diagnostic], list[Diagnostic]]:
        """Applies fixes and lints the result until nothing changes; everything stays in memory.

        A round with a fix after which its finding is still there is taken back, and that fix is not tried again.
        """
        from rebindlint.fix import apply_fixes

        fixed: list[Diagnostic] = []
        for _ in range(_ROUNDS):
            applied = apply_fixes([d for d in found if self._is_fixable(d)], self._texts.read)
            self._refused.update(_finding(diagnostic) for diagnostic in applied.refused)
            if not applied.texts:
                break
            before = {shown: self._texts.read(shown) for shown in applied.texts}
            self._texts.change(applied.texts)
            analysis_after = self._analyse_again(analysis, applied.texts.keys())
            found_after = self._found(analysis_after)
            useless = _still_there(applied.fixed, found, found_after)
            if useless:
                self._texts.change(before)
                self._refused |= useless
            else:
                analysis, found = analysis_after, found_after
                fixed += applied.fixed
        if self._refused:
            analysis = replace(analysis, diagnostics=tuple(map(self._without_refused_fix, analysis.diagnostics)))
            found = self._found(analysis)
        return analysis, found, fixed

    def _without_refused_fix(self, diagnostic: Diagnostic) -> Diagnostic:
        if diagnostic.fix is None or _finding(diagnostic) not in self._refused:
            return diagnostic
        self._log.append(f"{diagnostic.place}: the fix of {diagnostic.code} did not help and was put back")
        return replace(
            diagnostic, fix=None, help=f"{diagnostic.help or 'mend it by hand'} (a fix was tried and did not help)"
        )

    def _analyse_again(self, before: Analysis, changed: Set[str]) -> Analysis:
        analysis = self._analyse()
        still = {name: why for name, why in before.unparsed.items() if name not in changed}
        return self._with_syntax(
            replace(analysis, unparsed={**still, **analysis.unparsed}, parsed=before.parsed - changed)
        )

    def _is_fixable(self, diagnostic: Diagnostic) -> bool:
        fix = diagnostic.fix
        if fix is None or fix.applicability is Applicability.DISPLAY or _finding(diagnostic) in self._refused:
            return False
        allowed = self._request.unsafe or fix.applicability is Applicability.SAFE
        return allowed and all(edit.place.filename in self._targets for edit in fix.edits)

    def _write(self, changed: tuple[Changed, ...], analysis: Analysis) -> None:
        written = True
        for change in changed:
            try:
                write_source(change.source.path, change.after)
            except RebindlintError as error:
                self._failures.append(str(error))
                written = False
        if written and self._cache is not None:  # the next run finds these very texts
            self._cache.store(result_key(self._texts.originals(), self._config), analysis)


def _finding(diagnostic: Diagnostic) -> Finding:
    """What stays the same when lines move."""
    return (diagnostic.place.filename, diagnostic.code, diagnostic.hook, diagnostic.attribute)


def _still_there(
    fixed: Iterable[Diagnostic], before: Iterable[Diagnostic], after: Iterable[Diagnostic]
) -> set[Finding]:
    """The findings that should have gone with their fix and did not."""
    expected = Counter(map(_finding, before))
    expected.subtract(map(_finding, fixed))
    left = Counter(map(_finding, after))
    return {finding for finding in map(_finding, fixed) if left[finding] > expected[finding]}
