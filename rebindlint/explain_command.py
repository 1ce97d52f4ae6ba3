"""What ``rebindlint explain`` does once its arguments are understood: the page of a rule, or the account of a finding."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from rebindlint.collector import collector_at_rest
from rebindlint.model import RebindlintError

__all__ = ["explain"]


@collector_at_rest()
def explain(code: str, place: str | None, options: Mapping[str, object]) -> None:
    """Prints the page of a rule, or with a place how the finding there came about.

    Raises RebindlintError for an unknown code and when there is no such finding.
    """
    if place is None:
        given = [name for name, value in options.items() if value not in (None, False, "text")]
        if given:
            raise RebindlintError(f"--{given[0].replace('_', '-')} goes with a finding: add path:line")
        from rebindlint.rule_pages import explain as print_page

        print_page(code)
        return
    _explain_finding(code, place, dict(options))


def _explain_finding(code: str, place: str, options: dict[str, object]) -> None:
    """Late imports: of the pipeline and the engine, which a page does not need."""
    from rebindlint.command import configured
    from rebindlint.explain import Location, explain_finding
    from rebindlint.interrupt import interrupts_for_this_process_only
    from rebindlint.pipeline import Request
    from rebindlint.progress import ProgressBar
    from rebindlint.report.explanation import render, render_json
    from rebindlint.report.style import rendered, use_colour

    location = Location.parse(place)
    output_format, verbose = options.pop("output_format"), bool(options.pop("verbose"))
    file, isolated, no_cache = options.pop("config_file"), options.pop("isolated"), options.pop("no_cache")
    config = configured(location.path, options, config_file=file, isolated=isolated)
    request = Request((location.path,), config, cache=not no_cache)
    with interrupts_for_this_process_only(), ProgressBar(enabled=True) as progress:
        explained = explain_finding(code, location, request, progress)
    if output_format == "json":
        sys.stdout.write(render_json(explained.explanations))
        return
    lines = render(explained.explanations, explained.examined.read, everything=verbose)
    sys.stdout.write(rendered(lines, colour=use_colour(sys.stdout)))
