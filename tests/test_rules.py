"""Every rule and its page: one class a file, one owner for each fact, examples that do what they say, codes that agree."""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from source_tree import ROOT, needs_source_tree

from rebindlint import registry
from rebindlint.check import _concerned
from rebindlint.config import Config
from rebindlint.model import (
    Binding,
    Cell,
    Diagnostic,
    Hazard,
    Place,
    Position,
    Protocol,
    Rebinding,
    RebindlintError,
    Value,
)
from rebindlint.pipeline import Request, run
from rebindlint.plugin import Fixer, Rule

RULES = registry.rules()
CODES = [rule.code for rule in RULES]
HEADINGS = ("What it does", "Why is this bad?", "Example", "Use instead", "Fix safety", "Options", "See also")
REQUIRED = ("What it does", "Why is this bad?", "Fix safety", "See also")

# What the engine's comparison of cells can come to, besides statements that are wrong whatever becomes of their cell.
POSSIBLE = [
    *(
        (Hazard.ADDRESS, binding)
        for binding in (Binding.ATTRIBUTE, Binding.DATA, Binding.PARAMETER, Binding.REPLACE, Binding.SLOT)
    ),
    (Hazard.LIFETIME, Binding.RELEASE),
    (Hazard.LIFETIME, Binding.HOLDER),
    (Hazard.FRESHNESS, Binding.NONE),
]
KNOWN_MISSES: dict[str, str] = {}
FLAGS = ("retransformed", "overlapping", "prefer_copy_unsupported", "source_lost")
# Facts that have a rule of their own, whatever else is true of them; no fact is two of these.
OF_ITS_OWN = {"lazy": "RB205", "shared": "RB303", "lost": "RB401"}
# Rules whose findings take another reload than the engine's own.
RELOADS = {"RB401": "sleep"}


def headings(code: str) -> list[str]:
    return re.findall(r"^## (.+)$", registry.page(code), re.MULTILINE)


def block(code: str, heading: str) -> str:
    """The Python block below a heading; empty when the page has none."""
    match = re.search(
        rf"^## {re.escape(heading)}\n+```python\n(.*?)^```$", registry.page(code), re.MULTILINE | re.DOTALL
    )
    return match.group(1) if match else ""


def lint(text: str, folder: Path, reload: str | None = None) -> list[Diagnostic]:
    (folder / "hooks.py").write_text(text, encoding="utf-8")
    config = Config(root=folder, jobs=1, reload=reload)
    outcome = run(Request(("hooks.py",), config, cache=False, cwd=folder))
    assert outcome.failures == ()
    return list(outcome.diagnostics)


def fact(hazard: Hazard, binding: Binding) -> Rebinding:
    place = Place("hooks.py", Position(3, 9), Position(3, 20))
    return Rebinding(
        hazard, binding, Cell("self.table", "table"), "Impl.process_weights_after_loading", place, place, Value.FRESH,
        frozenset({Protocol.DIRECT}),
    )  # fmt: skip


def flagged(one: Rebinding, *flags: str) -> Rebinding:
    changes: dict[str, Any] = dict.fromkeys(flags, True)
    return replace(one, **changes)


def all_facts() -> Iterator[Rebinding]:
    for hazard, binding in itertools.product(Hazard, Binding):
        for values in itertools.product((False, True), repeat=len(FLAGS)):
            plain = flagged(fact(hazard, binding), *itertools.compress(FLAGS, values))
            yield plain
            yield from (flagged(plain, flag) for flag in OF_ITS_OWN)


def owners(one: Rebinding) -> list[str]:
    return [rule.code for rule in _concerned(one, RULES) if rule.owns(one)]


def files_of(package: str) -> set[str]:
    return {entry.name for entry in pkgutil.iter_modules(importlib.import_module(package).__path__)}


def described(one: Rebinding) -> str:
    return " ".join([one.hazard, one.binding, *(flag for flag in (*FLAGS, *OF_ITS_OWN) if getattr(one, flag))])


# ---- rules


def test_each_rule_is_one_file_with_one_class_whose_name_says_the_same() -> None:
    assert files_of("rebindlint.rules") == {type(rule).__module__.rpartition(".")[2] for rule in RULES}
    for rule in RULES:
        module = importlib.import_module(type(rule).__module__)
        classes = [
            c
            for c in vars(module).values()
            if isinstance(c, type) and issubclass(c, Rule) and c.__module__ == module.__name__
        ]
        assert classes == [type(rule)]
        assert re.fullmatch(r"RB\d{3}", rule.code)
        assert rule.name == type(rule).__module__.rpartition(".")[2].replace("_", "-")
        assert type(rule).__name__ == rule.name.title().replace("-", "")


def test_codes_and_names_are_taken_once_and_rules_come_by_code() -> None:
    assert sorted(set(CODES)) == CODES
    assert len({rule.name for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("code", CODES)
def test_a_page_has_its_headings_in_order(code: str) -> None:
    found = headings(code)
    assert [heading for heading in HEADINGS if heading in found] == found
    assert set(REQUIRED) <= set(found)
    assert ("Example" in found) == ("Use instead" in found)
    sections = re.split(r"^## .+$", registry.page(code), flags=re.MULTILINE)
    assert sections[0].strip() == ""
    assert all(section.strip() for section in sections[1:])


@pytest.mark.parametrize("code", [code for code in CODES if code >= "RB1"])
def test_rules_over_facts_show_an_example(code: str) -> None:
    assert block(code, "Example")
    assert block(code, "Use instead")


def test_an_unknown_code_has_no_page() -> None:
    with pytest.raises(RebindlintError, match="unknown rule RB999"):
        registry.page("RB999")


def _with_examples() -> Iterator[Any]:
    for code in (code for code in CODES if block(code, "Example")):
        miss = pytest.mark.xfail(strict=True, reason=KNOWN_MISSES.get(code, ""))
        yield pytest.param(code, marks=[miss] if code in KNOWN_MISSES else [])


@pytest.mark.parametrize("code", list(_with_examples()))
def test_the_example_is_flagged_with_the_rule_s_code_and_its_replacement_is_not(code: str, tmp_path: Path) -> None:
    found = lint(block(code, "Example"), tmp_path, RELOADS.get(code))
    assert [diagnostic.code for diagnostic in found] == [code]
    assert found[0].message
    assert lint(block(code, "Use instead"), tmp_path, RELOADS.get(code)) == []


@pytest.mark.parametrize("code", RELOADS)
def test_without_that_reload_the_example_is_silent(code: str, tmp_path: Path) -> None:
    assert lint(block(code, "Example"), tmp_path) == []


def test_no_fact_has_two_owners() -> None:
    assert {described(one): found for one in all_facts() if len(found := owners(one)) > 1} == {}


def test_every_fact_that_the_engine_can_find_has_one_owner() -> None:
    unowned = [described(one) for one in all_facts() if _is_possible(one) and len(owners(one)) != 1]
    assert unowned == []


def test_facts_with_a_rule_of_their_own_go_there() -> None:
    for one in all_facts():
        flag = next((flag for flag in OF_ITS_OWN if getattr(one, flag)), None)
        if flag is not None:
            assert owners(one) == [OF_ITS_OWN[flag]]
        else:
            assert (owners(one) == ["RB202"]) == (one.binding is Binding.SCALAR)
            assert not {*owners(one)} & {*OF_ITS_OWN.values()}


def _is_possible(one: Rebinding) -> bool:
    local = one.retransformed or one.overlapping or one.prefer_copy_unsupported
    of_its_own = one.binding is Binding.SCALAR or any(getattr(one, flag) for flag in OF_ITS_OWN)
    return local or of_its_own or (one.hazard, one.binding) in POSSIBLE


def test_messages_are_one_sentence_that_names_the_cell() -> None:
    for one in all_facts():
        for rule in (rule for rule in _concerned(one, RULES) if rule.owns(one)):
            message = rule.message(one)
            assert "\n" not in message
            assert not message.endswith(".")
            assert one.cell.path in message or rule.code == "RB304", rule.code
            assert rule.advice(one)


# ---- codes


def test_each_fixer_stands_beside_its_rule() -> None:
    stems = {rule.code: type(rule).__module__.rpartition(".")[2] for rule in RULES}
    fixers = registry.fixers()
    assert {stems[code] for code in fixers} == files_of("rebindlint.fixers")
    for code, fixer in fixers.items():
        assert isinstance(fixer, Fixer)
        assert fixer.code == code
        assert type(fixer).__module__.rpartition(".")[2] == stems[code]
        assert fixer.scope in ("statement", "guard")


@needs_source_tree
def test_the_changelog_lists_every_rule() -> None:
    listed = re.findall(r"^ *- (RB\d{3}) ([a-z-]+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == [(rule.code, rule.name) for rule in RULES]


@pytest.mark.parametrize("code", CODES)
def test_fix_safety_says_whether_there_is_a_fix(code: str) -> None:
    section = re.search(r"^## Fix safety\n+(.*?)(?=^## |\Z)", registry.page(code), re.MULTILINE | re.DOTALL)
    assert section is not None
    declines = re.match(r"(No automatic fix|There is no fix)", section.group(1)) is not None
    assert declines == (code not in registry.fixers() and code != "RB001")
