"""The stages in order: discover, index, execute, diagnose, propose fixes, select, suppress, fix, and again until stable."""

from __future__ import annotations

import contextlib
import gc
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from rebindlint.cache import Analysis, Cache, result_key
from rebindlint.collector import collector_at_rest
from rebindlint.config import Config
from rebindlint.discover import Discovery, Source, discover
from rebindlint.model import Applicability, Diagnostic, RebindlintError
from rebindlint.parse_errors import SyntaxCheck, Unparsed, parse_error
from rebindlint.report.style import counted
from rebindlint.rounds import Settled, fix_in_rounds
from rebindlint.selection import is_selected, select
from rebindlint.suppress import apply_suppressions
from rebindlint.texts import Changed, Texts, write_source

__all__ = ["Discovered", "Examined", "Outcome", "Request", "examine", "find_files", "run", "silent_about_linted_code"]

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Request:
    """What to lint and what to do with it.

    ``fix`` computes fixed texts, ``write`` puts them into the files (never standard input). ``affected`` also reports
    findings outside the given files whose call chain goes through one of them; ``show_unresolved`` also reports the calls in the
    given files that could not be entered.
    """

    paths: tuple[str, ...]
    config: Config
    fix: bool = False
    unsafe: bool = False
    write: bool = True
    affected: bool = False
    show_unresolved: bool = False
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


@dataclass(frozen=True, slots=True)
class Examined:
    """Everything that was found out about the project, before selection and suppression; ``reported`` is what a check would report."""

    analysis: Analysis
    reported: tuple[Diagnostic, ...]
    sources: tuple[Source, ...]
    targets: frozenset[str]
    failures: tuple[str, ...]
    read: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Discovered:
    """The project and the files that were asked for, before anything is parsed."""

    sources: tuple[Source, ...]
    targets: frozenset[str]
    failures: tuple[str, ...]
    read: Callable[[str], str]


def find_files(request: Request) -> Discovered:
    """The first stage alone, for whoever goes on by himself. Raises RebindlintError as ``run`` does."""
    discovery = _discover(request)
    return Discovered(discovery.context, discovery.targets, discovery.failures, Texts(discovery.context).read)


def run(request: Request, progress: Progress | None = None) -> Outcome:
    """Lints, and fixes when asked. Raises RebindlintError only when nothing at all can be done."""
    with silent_about_linted_code(), collector_at_rest():
        return _Run(request, _discover(request), progress).outcome()


def examine(request: Request, progress: Progress | None = None) -> Examined:
    """Lints and changes nothing, for whoever wants to tell more about one finding. Raises RebindlintError as ``run`` does."""
    with silent_about_linted_code(), collector_at_rest():
        return _Run(request, _discover(request), progress).examined()


def _discover(request: Request) -> Discovery:
    return discover(
        request.paths,
        request.config,
        stdin_text=request.stdin_text,
        stdin_filename=request.stdin_filename,
        cwd=request.cwd,
    )


@contextlib.contextmanager
def silent_about_linted_code() -> Iterator[None]:
    """Parsing the linted code may warn about it; that is not for the user of a linter."""
    with warnings.catch_warnings():
        for about_the_linted_code in (SyntaxWarning, DeprecationWarning):
            warnings.simplefilter("ignore", about_the_linted_code)
        yield


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
        unwritten: set[str] = set()
        unfixed: list[Diagnostic] = []  # their files could not be written
        if self._request.fix:
            settled = fix_in_rounds(
                self._texts, analysis, analyse_again=self._analyse_again, reported=self._reported, may_fix=self._may_fix
            )
            if self._request.write and (settled.fixed or settled.refused):
                unwritten = self._write(settled.analysis)
                unfixed = [d for d in settled.fixed if d.place.filename in unwritten]
                settled = replace(settled, fixed=tuple(d for d in settled.fixed if d not in unfixed))
        else:
            settled = Settled(analysis, self._reported(analysis))
        return Outcome(
            diagnostics=tuple(sorted((*settled.found, *unfixed), key=lambda d: d.sort_key)),
            failures=(*self._failures, *self._unreadable(settled.analysis)),
            read=self._texts.read,
            fixed=settled.fixed,
            refused=settled.refused,
            changed=tuple(change for change in self._texts.changed() if change.source.shown not in unwritten),
            files=len(self._targets),
            log=(*self._log, *self._assumptions(settled.analysis)),
        )

    def examined(self) -> Examined:
        analysis = self._recall_or_analyse()
        return Examined(
            analysis,
            tuple(self._reported(analysis)),
            self._texts.sources(),
            self._targets,
            (*self._failures, *self._unreadable(analysis)),
            self._texts.read,
        )

    def _recall_or_analyse(self) -> Analysis:
        if self._cache is None:
            return self._analyse_all()
        key = result_key(self._texts.sources(), self._config)
        known = self._cache.load(key)
        analysis = self._analyse_all() if known is None else self._with_syntax(known)
        if analysis is not known:
            self._cache.store(key, analysis)
        else:
            self._log.append(f"{counted(analysis.hooks, 'hook')}: result found in the cache")
        return analysis

    def _analyse_all(self) -> Analysis:
        """The syntax of all targets is checked beside the analysis."""
        check = self._syntax_check(Analysis((), {}))
        analysis = self._analyse()
        return self._joined(analysis, check) if check is not None else analysis

    def _analyse(self) -> Analysis:
        """From sources to diagnostics with fixes attached; imported late, because LibCST is slow to import."""
        from rebindlint import fix, registry
        from rebindlint.check import diagnose
        from rebindlint.execution import execute_hooks
        from rebindlint.execution.unresolved import notes_of
        from rebindlint.index import build_index

        index = build_index(self._texts.sources(), self._config)
        executed = execute_hooks(index, self._config, jobs=self._config.jobs, progress=self._progress)
        diagnostics = diagnose(executed.facts, registry.rules(), index, self._config)
        diagnostics = fix.propose(diagnostics, index, self._config, self._texts.read)
        self._log.append(f"{executed.hooks} hooks executed along {executed.executions} paths")
        refused = {shown: Unparsed(message, row, column) for shown, (row, column, message) in index.failures.items()}
        return Analysis(
            (*diagnostics, *executed.notes),
            refused,
            hooks=executed.hooks,
            sampled=executed.sampled,
            unresolved=notes_of(executed.unresolved),
        )

    def _with_syntax(self, analysis: Analysis) -> Analysis:
        check = self._syntax_check(analysis)
        return self._joined(analysis, check) if check is not None else analysis

    def _syntax_check(self, analysis: Analysis) -> SyntaxCheck | None:
        """The index parses only what a hook leads to; a target must not stay silent because it is broken elsewhere."""
        wanted = [s for s in self._texts.sources() if s.shown in self._targets and s.shown not in analysis.parsed]
        return SyntaxCheck(wanted, jobs=self._config.jobs) if wanted else None

    @staticmethod
    def _joined(analysis: Analysis, check: SyntaxCheck) -> Analysis:
        parsed = analysis.parsed | {source.shown for source in check.sources}
        return replace(analysis, unparsed={**analysis.unparsed, **check.result()}, parsed=parsed)

    def _reported(self, analysis: Analysis) -> list[Diagnostic]:
        """What is to be reported: selected, not suppressed, and in the given files (or affected by them)."""
        unparsed = {name: why for name, why in analysis.unparsed.items() if why.row and name in self._targets}
        shown = analysis.unresolved if self._request.show_unresolved else ()
        everything = [*analysis.diagnostics, *shown, *(parse_error(name, why) for name, why in unparsed.items())]
        # A comment is in use even where the configuration does not ask for the finding that it hides.
        kept = apply_suppressions(
            everything, self._texts.read, files=self._targets - unparsed.keys(), is_on=self._is_on
        )
        found = (self._as_here(d) for d in select(kept, self._config) if self._is_reported(d))
        return sorted(found, key=lambda d: d.sort_key)

    def _as_here(self, diagnostic: Diagnostic) -> Diagnostic:
        """A fix that would change a file that was not given is shown and not applied."""
        fix = diagnostic.fix
        if fix is None or all(edit.place.filename in self._targets for edit in fix.edits):
            return diagnostic
        return replace(diagnostic, fix=replace(fix, applicability=Applicability.DISPLAY))

    def _is_on(self, code: str) -> bool:
        asked = code != "RB004" or self._request.show_unresolved
        if code == "RB401":  # found under a protocol that is looked at on demand
            asked = self._config.reload in ("sleep", "all")
        return asked and is_selected(code, self._config)

    def _is_reported(self, diagnostic: Diagnostic) -> bool:
        if diagnostic.place.filename in self._targets:
            return True
        return self._request.affected and any(frame.filename in self._targets for frame in diagnostic.trace)

    def _analyse_again(self, before: Analysis, changed: set[str]) -> Analysis:
        gc.collect()  # the index that was executed before
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

    def _write(self, analysis: Analysis) -> set[str]:
        """The files that could not be written."""
        unwritten: set[str] = set()
        for change in self._texts.changed():
            try:
                write_source(change.source.path, change.after, change.source.shown)
            except RebindlintError as error:
                self._failures.append(str(error))
                unwritten.add(change.source.shown)
        if not unwritten and self._cache is not None:  # the next run finds these very texts
            self._cache.store(result_key(self._texts.originals(), self._config), analysis)
        return unwritten

    def _assumptions(self, analysis: Analysis) -> Iterator[str]:
        """What was left out or taken for granted, in numbers."""
        if analysis.sampled:
            hooks = counted(analysis.sampled, "hook")
            yield f"{hooks}: of the arms that bind nothing a sample was taken"
        unresolved = sum(1 for note in analysis.unresolved if note.place.filename in self._targets)
        if unresolved:
            yield f"{counted(unresolved, 'call')} could not be entered (--show-unresolved lists them)"

    def _unreadable(self, analysis: Analysis) -> list[str]:
        return [why.message for name, why in sorted(analysis.unparsed.items()) if not why.row and name in self._targets]
