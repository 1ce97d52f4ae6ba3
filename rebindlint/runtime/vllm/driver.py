"""Verify one reload of the real engine. Start reading here.

```python
report = verify_engine(Request(Path("v1"), Path("v2"), path="reload_weights"))
```
"""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from rebindlint.model import RebindlintError
from rebindlint.report.style import counted
from rebindlint.runtime.devices import chosen_device
from rebindlint.runtime.findings import Finding
from rebindlint.runtime.report import Report, Unfinished
from rebindlint.runtime.vllm import session
from rebindlint.runtime.vllm.checkpoints import (
    Checkpoint,
    expected_after_reload,
    missing_tensors,
    must_fit,
    read_checkpoint,
)
from rebindlint.runtime.vllm.engine import VLLM_IS_MISSING, Engine, engine_version, running, vllm_is_missing
from rebindlint.runtime.vllm.kept import Deaths, Kept, ended_by
from rebindlint.runtime.vllm.layers import must_match, restricted
from rebindlint.runtime.vllm.reload import PATHS, TRANSFER_BACKEND
from rebindlint.runtime.vllm.request import Request

__all__ = ["verify_engine"]

_LONGEST: Final = 500  # characters of an engine's message


def verify_engine(
    request: Request,
    progress: Callable[[str], None] | None = None,
    partial: Callable[[Report], None] | None = None,
) -> Report:
    """Start an engine on the first checkpoint, capture one decode step, reload from the second, judge, shut down.

    ``progress`` is told in words what is being done; ``partial`` is given what is known before the reloaded model is
    run (with one rank only). Raises RebindlintError, in one line, for bad input and for an
    engine that cannot load, generate or reload; the engine's own exception is its ``__cause__``.
    """
    say = progress or (lambda _text: None)
    loaded, reload_from = _checked(request)
    model, checkpoint = str(request.model.resolve()), str(request.reload_from.resolve())
    transfer = TRANSFER_BACKEND if request.path == "weight-transfer" else ""
    started = False
    try:
        say(f"starting vLLM {engine_version()} on {request.model}")
        if transfer:
            session.prepare_transfer()
        with (
            running(
                model,
                tensor_parallel=request.tensor_parallel,
                transfer_backend=transfer,
                plain=request.plain_linears,
            ) as engine,
            expected_after_reload(loaded, reload_from) as expected,
        ):
            started = True
            folders = (model, checkpoint, str(expected.resolve()))
            reports = _by_rank(engine, request, folders, say, partial)
    except Unfinished as error:
        raise Unfinished(str(error), _whole(error.report, request, loaded, reload_from)) from error
    except RebindlintError:
        raise
    except Exception as error:  # the engine's
        what = "failed" if started else f"could not load {request.model}"
        raise RebindlintError(f"the engine {what}: {_one_line(error)}") from error
    return _whole(_merged(reports, request.tensor_parallel), request, loaded, reload_from)


def _whole(report: Report, request: Request, loaded: Checkpoint, reload_from: Checkpoint) -> Report:
    if missing := missing_tensors(loaded, reload_from):
        some = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        which = counted(len(missing), "tensor")
        text = f"{request.reload_from} lacks {which}, and what it lacks a reload has to leave as it was: {some}"
        report = dataclasses.replace(report, notes=(*report.notes, text))
    return restricted(report, request.layers)


def _checked(request: Request) -> tuple[Checkpoint, Checkpoint]:
    if request.path not in PATHS:
        raise RebindlintError(f"unknown reload path {request.path!r}; use one of {', '.join(PATHS)}")
    if PATHS[request.path].same_weights and request.reload_from.resolve() != request.model.resolve():
        raise RebindlintError(f"{request.path} loads no weights, so there is no second checkpoint to reload from")
    if request.tensor_parallel < 1:
        raise RebindlintError("the number of tensor-parallel ranks must be 1 or more")
    loaded, reload_from = read_checkpoint(request.model), read_checkpoint(request.reload_from)
    must_fit(loaded, reload_from)
    if vllm_is_missing():
        raise RebindlintError(VLLM_IS_MISSING)
    chosen_device(request.device)
    return loaded, reload_from


def _by_rank(
    engine: Engine,
    request: Request,
    folders: tuple[str, str, str],
    say: Callable[[str], None],
    partial: Callable[[Report], None] | None,
) -> Mapping[int, Report]:
    """Raises Unfinished when ranks died and others had something to tell."""
    ranks = request.tensor_parallel
    if ranks == 1:
        return dict(enumerate(_verified(engine, request, folders, say, partial)))
    with (
        tempfile.TemporaryDirectory(prefix="rebindlint-", ignore_cleanup_errors=True) as folder,
        Deaths(engine.rank_processes()) as deaths,
    ):
        doing = ""

        def said(text: str) -> None:
            nonlocal doing
            doing = text
            say(text)

        try:
            return dict(enumerate(_verified(engine, request, folders, said, None, folder)))
        except Exception as error:  # the engine's, when a rank is gone
            dead = deaths.settled()
            if not dead:
                raise
            what = "; ".join(f"rank {rank} of {ranks} {ended_by(code)}" for rank, code in dead.items())
            kept = Kept(Path(folder)).reports(ranks)
            if not kept:
                raise RebindlintError(f"{what} while {doing}, before anything was known") from error
            knew = f"what rank{'s' if len(kept) > 1 else ''} {', '.join(map(str, kept))} knew until then"
            raise Unfinished(f"{what} while {doing}; reported is {knew}", _merged(kept, ranks)) from error


def _verified(
    engine: Engine,
    request: Request,
    folders: tuple[str, str, str],
    say: Callable[[str], None],
    partial: Callable[[Report], None] | None,
    kept: str = "",
) -> Sequence[Report]:
    model, checkpoint, expected = folders
    try:
        engine.call(session.listen, request.device, kept)
        say("capturing one decode step")
        engine.generate()
        engine.call(session.capture)
        if request.layers:
            must_match(request.layers, {path for paths in engine.call(session.paths) for path in paths})
        say(f"reloading from {request.reload_from} ({request.path})")
        try:
            engine.call(session.reload, request.path, checkpoint, model == checkpoint)
        except Exception as error:  # the engine's
            raise RebindlintError(f"the reload failed, the model may be half reloaded: {_one_line(error)}") from error
        say("verifying against the captured step and a fresh load")
        reports: Sequence[Report] = engine.call(session.verify, expected, partial)
        return reports
    finally:
        with contextlib.suppress(Exception):  # an engine that lost a rank answers no more
            engine.call(session.close)


def _one_line(error: BaseException) -> str:
    """The whole message, because an engine's first line often only announces the others."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text if len(text) <= _LONGEST else text[:_LONGEST] + ' ...'}"


def _merged(reports: Mapping[int, Report], ranks: int) -> Report:
    """One report for all ranks; a finding says on which ranks it was made, unless there is only one."""
    first = next(iter(reports.values()))
    if ranks == 1:
        return first
    found: dict[tuple[str, str, str], tuple[Finding, list[int]]] = {}
    for rank, report in reports.items():
        for finding in report.findings:
            found.setdefault(finding.sort_key, (finding, []))[1].append(rank)
    findings = tuple(
        dataclasses.replace(finding, evidence=(*finding.evidence, f"on rank {', '.join(map(str, ranks))}"))
        for _, (finding, ranks) in sorted(found.items())
    )
    return dataclasses.replace(
        first,
        findings=findings,
        comparisons=tuple(
            dataclasses.replace(comparison, subject=f"rank {rank}: {comparison.subject}")
            for rank, report in reports.items()
            for comparison in report.comparisons
        ),
        notes=tuple(dict.fromkeys(note for report in reports.values() for note in report.notes)),
    )
