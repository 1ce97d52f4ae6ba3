from __future__ import annotations

import re
from pathlib import Path

import pytest

from rebindlint.model import RebindlintError
from rebindlint.runtime.codes import code, codes, page

HEADINGS = ["What it does", "Why is this bad", "Example", "Use instead", "Fix safety", "See also"]
STATIC = {f"RB{n}" for n in (101, 102, 103, 104, 105, 106, 201, 202, 203, 204, 205, 301, 302, 303, 304, 401)}


def test_the_codes_are_those_of_the_design() -> None:
    assert list(codes()) == [f"RT{number}" for number in range(100, 111)]
    assert len({entry.name for entry in codes().values()}) == 11


@pytest.mark.parametrize("number", sorted(codes()))
def test_every_code_has_a_page_like_a_rules(number: str) -> None:
    text = page(number)
    assert text.startswith(f"# {code(number).name} ({number})\n")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert [heading for heading in headings if heading != "Options"] == HEADINGS
    assert text.count("```") % 2 == 0


@pytest.mark.parametrize("number", sorted(codes()))
def test_every_code_that_is_cited_exists(number: str) -> None:
    cited = set(re.findall(r"\bR[BT]\d{3}\b", page(number))) | set(code(number).static)
    assert cited <= STATIC | set(codes())
    assert set(code(number).static) <= STATIC


def test_every_code_that_the_engine_reports_exists() -> None:
    import rebindlint.runtime

    folder = Path(rebindlint.runtime.__file__ or "").parent
    reported = {number for path in folder.glob("*.py") for number in re.findall(r'"(RT\d{3})"', path.read_text())}
    assert reported == set(codes())


@pytest.mark.parametrize("number", sorted(codes()))
def test_every_code_has_a_flagged_and_a_silent_case(number: str) -> None:
    sources = "".join(path.read_text() for path in Path(__file__).parent.glob("test_findings_*.py"))
    assert len(re.findall(rf"^def test_{number.lower()}_", sources, re.MULTILINE)) >= 2


def test_an_unknown_code_is_one_line() -> None:
    with pytest.raises(RebindlintError, match="unknown runtime code RT999; known are RT100"):
        page("RT999")
