"""The documents agree with the code and with each other."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from source_tree import ROOT

from rebindlint.catalogue import catalogue
from rebindlint.config import Config, load_config
from rebindlint.docs import pages, stale

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"\bRB\d{3}\b")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
# Keys of Config that no file holds: where the file was found.
NOT_KEYS = {"root", "file"}


def names_by_code() -> dict[str, str]:
    return {rule.code: rule.name for rule in catalogue()}


def prose(text: str) -> str:
    return FENCE.sub("", text)


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to headings."""
    titles = re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def page_id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_there_are_documents() -> None:
    assert {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/hazard-model.md"} <= {page_id(path) for path in PAGES}


def test_the_rule_pages_are_fresh() -> None:
    assert stale(ROOT / "docs" / "rules", pages()) == []


def test_a_stale_a_missing_and_a_left_over_page_are_noticed(tmp_path: Path) -> None:
    texts = {"one.md": "1", "two.md": "2"}
    (tmp_path / "one.md").write_text("old")
    (tmp_path / "three.md").write_text("3")
    assert stale(tmp_path, texts) == [
        f"{tmp_path / 'one.md'}: stale",
        f"{tmp_path / 'two.md'}: missing",
        f"{tmp_path / 'three.md'}: no such rule",
    ]


def test_check_fails_on_a_stale_page_and_writes_nothing(tmp_path: Path) -> None:
    def generate(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "rebindlint.docs", *arguments, str(tmp_path / "rules")]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert generate("--check").returncode == 1
    assert not (tmp_path / "rules").exists()
    assert generate().returncode == 0
    assert generate("--check").returncode == 0
    page = tmp_path / "rules" / "attribute-rebind.md"
    page.write_text(page.read_text() + "by hand\n")
    (tmp_path / "rules" / "gone.md").write_text("")
    failed = generate("--check")
    assert failed.returncode == 1
    assert "attribute-rebind.md: stale" in failed.stderr
    assert page.read_text().endswith("by hand\n")
    assert generate().returncode == 0
    assert not (tmp_path / "rules" / "gone.md").exists()


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_links_lead_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    dead = []
    for link in LINK.findall(prose(text)):
        if link.startswith(("https://", "http://")):
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            dead.append(link)
    assert dead == []


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_codes_that_are_cited_exist(path: Path) -> None:
    assert set(CODE.findall(path.read_text(encoding="utf-8"))) <= names_by_code().keys()


def test_the_changelog_and_the_hazard_model_list_every_rule_by_its_name() -> None:
    hazard_model = (ROOT / "docs" / "hazard-model.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^\| (RB\d{3}) \| ([\w-]+) \|", hazard_model, re.MULTILINE)) == names_by_code()
    assert dict(re.findall(r"^ +- (RB\d{3}) ([\w-]+)$", CHANGELOG, re.MULTILINE)) == names_by_code()


def first_cells(text: str) -> Iterator[str]:
    """Every backticked word of the first column of the tables in ``text``."""
    for row in re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE):
        yield from re.findall(r"`([^`]+)`", row)


def keys() -> set[str]:
    return {field.name.replace("_", "-") for field in dataclasses.fields(Config) if field.name not in NOT_KEYS}


def test_the_readme_names_every_key_of_the_configuration() -> None:
    section = README.partition("\n## Configuration\n")[2].partition("\n## ")[0]
    listed = [key for key in first_cells(section) if key != "[tool.rebindlint]"]
    assert sorted(listed) == sorted(keys())


def test_the_configuration_page_explains_every_key_with_its_default() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w-]+)` \| [^|]+ \| ([^|]+?) \|", text, re.MULTILINE))
    assert rows.keys() == keys()
    for key, shown in rows.items():
        default = getattr(Config(), key.replace("-", "_"))
        if isinstance(default, bool):
            assert shown == f"`{str(default).lower()}`", key
        elif isinstance(default, int | str):
            assert shown == f"`{default}`", key
        elif default == ():
            assert shown in ("`[]`", "`{}`"), key


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_the_configurations_shown_are_valid(path: Path, tmp_path: Path) -> None:
    for language, block in FENCE.findall(path.read_text(encoding="utf-8")):
        if language == "toml" and "tool.rebindlint" in block:
            (tmp_path / "pyproject.toml").write_text(block)
            assert load_config(cwd=tmp_path).file == tmp_path / "pyproject.toml"


def test_the_readme_shows_what_is_printed() -> None:
    shown = re.search(r"^```console\n\$ rebindlint (tiny_engine/\S+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert shown is not None
    command = [sys.executable, "-m", "rebindlint", "--no-cache", shown[1]]
    run = subprocess.run(command, cwd=ROOT / "examples", capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stderr
    for part in shown[2].strip().strip(".").split("\n...\n"):
        assert part.strip("\n") in run.stdout
