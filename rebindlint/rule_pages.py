"""``rebindlint explain`` and ``rebindlint rules``: what the rules say about themselves."""

from __future__ import annotations

import json
import sys

from rebindlint.catalogue import Entry, catalogue
from rebindlint.config import did_you_mean
from rebindlint.model import RebindlintError
from rebindlint.report.style import use_colour
from rebindlint.runtime.codes import Code, codes
from rebindlint.runtime.codes import page as runtime_page

__all__ = ["explain", "list_rules"]


def explain(wanted: str) -> None:
    """Prints the page of the rule or runtime code with this code or name. Raises RebindlintError when there is none."""
    entry = _find(wanted)
    if isinstance(entry, Entry):
        page = f"# {entry.name} ({entry.code})\n\n{entry.page.strip()}\n"
    else:
        page = runtime_page(entry.code).strip() + "\n"
    if not use_colour(sys.stdout):
        sys.stdout.write(page)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(file=sys.stdout, force_terminal=True).print(Markdown(page))


def _find(wanted: str) -> Entry | Code:
    every: tuple[Entry | Code, ...] = (*catalogue(), *codes().values())
    entries = {key: entry for entry in every for key in (entry.code, entry.name)}
    for key in (wanted.upper(), wanted.lower()):
        if key in entries:
            return entries[key]
    hint = did_you_mean(wanted.upper(), entries) or did_you_mean(wanted.lower(), entries)
    raise RebindlintError(f"unknown rule `{wanted}`{hint}")


def list_rules(output_format: str) -> None:
    """Prints a line, or with ``json`` a record, for each rule."""
    entries = catalogue()
    if output_format == "json":
        records = [{"code": one.code, "name": one.name, "fix": one.fix, "summary": one.summary} for one in entries]
        sys.stdout.write(json.dumps(records, indent=2) + "\n")
        return
    width = max(len(one.name) for one in entries)
    for one in entries:
        sys.stdout.write(
            f"{one.code}  {one.name:{width}}  {'fix' if one.fix else '   '}  {one.summary}".rstrip() + "\n"
        )
