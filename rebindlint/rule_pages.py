"""``rebindlint explain`` and ``rebindlint rules``: what the rules say about themselves."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass

from rebindlint import registry
from rebindlint.config import did_you_mean
from rebindlint.model import RebindlintError
from rebindlint.report.style import use_colour
from rebindlint.suppress import FIXED_CODES

__all__ = ["RuleSummary", "explain", "list_rules", "summaries"]


@dataclass(frozen=True, slots=True)
class RuleSummary:
    """A row of the table: ``fix`` tells whether there is a fixer, ``summary`` is the first sentence of the page."""

    code: str
    name: str
    fix: bool
    summary: str


def summaries() -> list[RuleSummary]:
    fixed = registry.fixers().keys() | FIXED_CODES
    return [
        RuleSummary(rule.code, rule.name, rule.code in fixed, first_sentence(registry.page(rule.code)))
        for rule in registry.rules()
    ]


def explain(code: str) -> None:
    """Prints the page of the rule with this code or name. Raises RebindlintError when there is none."""
    names = {rule.code: rule.name for rule in registry.rules()}
    wanted = next((known for known, name in names.items() if code.upper() == known or code.lower() == name), None)
    if wanted is None:
        raise RebindlintError(
            f"unknown rule `{code}`{did_you_mean(code.upper(), names) or did_you_mean(code, names.values())}"
        )
    page = f"# {names[wanted]} ({wanted})\n\n{registry.page(wanted).strip()}\n"
    if not use_colour(sys.stdout):
        sys.stdout.write(page)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(file=sys.stdout, force_terminal=True).print(Markdown(page))


def list_rules(output_format: str) -> None:
    rows = summaries()
    if output_format == "json":
        sys.stdout.write(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
        return
    code, name = (max(len(getattr(row, field)) for row in rows) for field in ("code", "name"))
    for row in rows:
        sys.stdout.write(
            f"{row.code:{code}}  {row.name:{name}}  {'fix' if row.fix else '   '}  {row.summary}".rstrip() + "\n"
        )


def first_sentence(page: str) -> str:
    """The first sentence below the page's first heading."""
    for paragraph in page.split("\n\n"):
        text = " ".join(line.strip() for line in paragraph.strip().splitlines() if not line.startswith("#"))
        if text:
            sentence, stop, _ = text.partition(". ")
            return sentence + stop.rstrip()
    return ""
