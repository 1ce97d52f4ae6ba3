"""The stages in order: discover, index, execute, diagnose, propose fixes, select, suppress, fix, and again until stable."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from rebindlint.cache import Analysis, Cache, result_key
from rebindlint.config import Config
from rebindlint.discover import Discovery, discover
from rebindlint.model import Applicability, Diagnostic, RebindlintError
from rebindlint.parse_errors import Unparsed, check_syntax, parse_error
from rebindlint.rounds import Settled, fix_in_rounds
from rebindlint.selection import is_selected, select
from rebindlint.suppress import apply_suppressions
from rebindlint.texts import Changed, Texts, write_source

__all__ = ["Outcome", "Request", "run"]

Progress = Callable[[int, int], None]


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
    """``diagnostics`` are left, ``fixed`` are gone with the texts in ``changed``, of ``refused`` the fix was put back.

    ``failures`` are one line each for what could not be done; ``read`` gives the present text of a linted file;
    ``files`` is the number of files that were asked for.
    """

    diagnostics: tuple[Diagnostic, ...]
    failures: tuple[str, ...]
    read: Callable[[str], str]
    fixed: tuple[Diagnostic, ...] = ()
    refused: tuple[Diagnostic, ...] = ()
    changed: tuple[Changed, ...] = ()
    files: int = 0
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

    def outcome(self) -> Outcome:
        analysis = self._recall_or_analyse()
        if self._request.fix:
            settled = fix_in_rounds(
                self._texts, analysis, analyse_again=self._analyse_again, reported=self._reported, may_fix=self._may_fix
            )
            if self._request.write and (settled.fixed or settled.refused):
                self._write(settled.analysis)
        else:
            settled = Settled(analysis, self._reported(analysis))
        return Outcome(
            diagnostics=tuple(settled.found),
            failures=(*self._failures, *self._unreadable(settled.analysis)),
            read=self._texts.read,
            fixed=settled.fixed,
            refused=settled.refused,
            changed=self._texts.changed(),
            files=len(self._targets),
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

    def _reported(self, analysis: Analysis) -> list[Diagnostic]:
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

    def _analyse_again(self, before: Analysis, changed: set[str]) -> Analysis:
        analysis = self._analyse()
        still = {name: why for name, why in before.unparsed.items() if name not in changed}
        return self._with_syntax(
            replace(analysis, unparsed={**analysis.unparsed, **still}, parsed=before.parsed - changed)
        )

    def _may_fix(self, diagnostic: Diagnostic) -> bool:
        fix = diagnostic.fix
        if fix is None or fix.applicability is Applicability.DISPLAY:
            return False
        allowed = self._request.unsafe or fix.applicability is Applicability.SAFE
        return allowed and all(edit.place.filename in self._targets for edit in fix.edits)

    def _write(self, analysis: Analysis) -> None:
        written = True
        for change in self._texts.changed():
            try:
                write_source(change.source.path, change.after)
            except RebindlintError as error:
                self._failures.append(str(error))
                written = False
        if written and self._cache is not None:  # the next run finds these very texts
            self._cache.store(result_key(self._texts.originals(), self._config), analysis)

    def _unreadable(self, analysis: Analysis) -> list[str]:
        return [why.message for name, why in sorted(analysis.unparsed.items()) if not why.row and name in self._targets]
