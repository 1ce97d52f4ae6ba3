"""The page of commands names every option that there is, and no other."""

from __future__ import annotations

import re

import click
import pytest
from source_tree import ROOT

from rebindlint.cli import cli

PAGE = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")


def section(name: str) -> str:
    return PAGE.partition(f"\n## {name}\n")[2].partition("\n## ")[0]


def options(command: click.Command) -> set[str]:
    declared = (o for o in command.params if isinstance(o, click.Option))
    return {name for option in declared for name in (*option.opts, *option.secondary_opts)}


@pytest.mark.parametrize("name", ["check", "explain", "hooks", "rules"])
def test_the_options_of_a_command_are_those_of_its_table(name: str) -> None:
    first_cells = re.findall(r"^\| (`-[^|]*) \|", section(name), re.MULTILINE)
    listed = {option for cell in first_cells for option in re.findall(r"`(-[\w-]+)`", cell)}
    assert listed == options(cli.commands[name])
