"""The configuration: keys, nearest file, command line on top, one clear line for each mistake."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from rebindlint.config import Config, load_config
from rebindlint.config_values import PARSERS
from rebindlint.model import RebindlintError
from rebindlint.version import installed_version, satisfies


def write(folder: Path, text: str, name: str = "pyproject.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(text)
    return file


def refusal(folder: Path, text: str) -> str:
    write(folder, text)
    with pytest.raises(RebindlintError) as caught:
        load_config(["."], cwd=folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_key_has_a_field_and_every_field_a_key() -> None:
    fields = {field.name for field in dataclasses.fields(Config)} - {"root", "file"}
    assert {key.replace("-", "_") for key in PARSERS} == fields


def test_all_keys_are_read(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        """
        [tool.rebindlint]
        select = ["RB1", "rb203"]
        extend-select = ["RB3"]
        ignore = ["RB105"]
        extend-ignore = ["RB106"]
        fixable = ["RB101"]
        unfixable = ["RB102"]
        extend-safe-fixes = ["RB103"]
        extend-unsafe-fixes = ["RB104"]
        exclude = ["a"]
        extend-exclude = ["b/c"]
        force-exclude = true
        respect-gitignore = false
        src = ["lib"]
        cache-dir = ".c"
        fix = true
        unsafe-fixes = true
        output-format = "json"
        required-version = ">=0.0"
        target-version = "vllm==0.26"
        reload = "direct"
        hooks = ["finalize_my_weights", "pkg.mod:Class.method"]
        allocators = ["pkg.mod.alloc"]
        jobs = 3
        [tool.rebindlint.per-file-ignores]
        "tests/*" = ["RB101"]
        [tool.rebindlint.helpers]
        "pkg.mod.swap" = "copies-if"
        """,
    )
    assert load_config(["."], cwd=tmp_path) == Config(
        root=tmp_path,
        file=file,
        select=("RB1", "RB203"),
        extend_select=("RB3",),
        ignore=("RB105",),
        extend_ignore=("RB106",),
        per_file_ignores=(("tests/*", ("RB101",)),),
        fixable=("RB101",),
        unfixable=("RB102",),
        extend_safe_fixes=("RB103",),
        extend_unsafe_fixes=("RB104",),
        exclude=("a",),
        extend_exclude=("b/c",),
        force_exclude=True,
        respect_gitignore=False,
        src=("lib",),
        cache_dir=".c",
        fix=True,
        unsafe_fixes=True,
        output_format="json",
        required_version=">=0.0",
        target_version="vllm==0.26",
        reload="direct",
        hooks=("finalize_my_weights", "pkg.mod:Class.method"),
        helpers=(("pkg.mod.swap", "copies-if"),),
        allocators=("pkg.mod.alloc",),
        jobs=3,
    )


def test_the_nearest_pyproject_with_our_table_wins(tmp_path: Path) -> None:
    write(tmp_path, "[tool.rebindlint]\njobs = 1")
    write(tmp_path / "a", "[tool.rebindlint]\njobs = 2")
    write(tmp_path / "a" / "b", "[project]\nname = 'other'")
    inner = tmp_path / "a" / "b" / "x.py"
    inner.write_text("")
    assert (load_config([inner], cwd=tmp_path).jobs, load_config([inner], cwd=tmp_path).root) == (2, tmp_path / "a")
    assert load_config(["."], cwd=tmp_path).jobs == 1
    assert load_config(["missing/y.py"], cwd=tmp_path).jobs == 1


def test_isolated_reads_no_file_but_still_knows_the_project(tmp_path: Path) -> None:
    write(tmp_path, "[tool.rebindlint]\njobs = 1")
    (tmp_path / "sub").mkdir()
    config = load_config(["sub"], isolated=True, cwd=tmp_path)
    assert (config.jobs, config.file, config.root) == (0, None, tmp_path)


def test_a_config_file_of_ones_own_has_the_keys_at_its_top(tmp_path: Path) -> None:
    write(tmp_path, "reload = 'all'", "rebindlint.toml")
    write(tmp_path / "elsewhere", "[tool.rebindlint]\nreload = 'direct'")
    assert load_config(["."], config_file=Path("rebindlint.toml"), cwd=tmp_path).reload == "all"
    assert load_config(["."], config_file=Path("elsewhere/pyproject.toml"), cwd=tmp_path).reload == "direct"
    with pytest.raises(RebindlintError, match=r"^none\.toml: cannot be read: No such file"):
        load_config(["."], config_file=Path("none.toml"), cwd=tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("selct = ['RB1']", "pyproject.toml: unknown key `selct` (did you mean `select`?)"),
        ("zzz = 1", "pyproject.toml: unknown key `zzz`"),
        ("select = 'RB1'", "pyproject.toml: `select` must be a list of strings, not a string"),
        ("select = ['RB1', 2]", "pyproject.toml: `select` must be a list of strings, but holds a number"),
        (
            "select = ['attribute']",
            "pyproject.toml: `select` holds `attribute`, which is neither a rule code nor a prefix of one",
        ),
        ("fix = 'yes'", "pyproject.toml: `fix` must be true or false, not a string"),
        ("jobs = -1", "pyproject.toml: `jobs` must be a whole number of processes, 0 for one a core"),
        ("jobs = true", "pyproject.toml: `jobs` must be a whole number of processes, 0 for one a core"),
        ("reload = 'slow'", "pyproject.toml: `reload` must be one of direct, layerwise, sleep, all, not 'slow'"),
        ("cache-dir = 1979-05-27", "pyproject.toml: `cache-dir` must be a string, not a date or time"),
        (
            "target-version = '0.26'",
            "pyproject.toml: `target-version` holds `0.26`, which does not read like `vllm==0.26`",
        ),
        ("hooks = ['a b']", "pyproject.toml: `hooks` holds `a b`, which does not read like `pkg.mod:Class.method`"),
        ("helpers = ['swap']", "pyproject.toml: `helpers` must be a table, not a list"),
        (
            "helpers = {'m.swap' = 'moves'}",
            "pyproject.toml: `helpers` for `m.swap` must be one of rebinds, copies, copies-if, not 'moves'",
        ),
        (
            "required-version = 'new'",
            "pyproject.toml: `required-version` `new` is not a version requirement such as `>=0.1,<1`",
        ),
        (
            "required-version = '>=99'",
            f"pyproject.toml: rebindlint >=99 is required, but this is {installed_version()}",
        ),
    ],
)
def test_a_mistake_names_file_and_key(tmp_path: Path, line: str, message: str) -> None:
    assert refusal(tmp_path, f"[tool.rebindlint]\n{line}\n") == message


def test_broken_toml_names_the_line(tmp_path: Path) -> None:
    message = refusal(tmp_path, "[tool.rebindlint]\nselect = [\n")
    assert message.startswith("pyproject.toml: not valid TOML: ")
    assert "line" in message or "end of document" in message


def test_our_table_must_be_a_table(tmp_path: Path) -> None:
    assert refusal(tmp_path, "[tool]\nrebindlint = 1\n") == "pyproject.toml: `tool.rebindlint` must be a table"


def test_the_command_line_goes_on_top(tmp_path: Path) -> None:
    config = Config(root=tmp_path, ignore=("RB1",), extend_exclude=("a",), jobs=4)
    assert config.but({"jobs": None, "fix": True}) == dataclasses.replace(config, fix=True)
    added = config.but({"ignore": ("RB2",), "extend_exclude": ("b",)})
    assert (added.ignore, added.extend_exclude) == (("RB1", "RB2"), ("a", "b"))


def test_select_on_the_command_line_forgets_what_the_file_ignores(tmp_path: Path) -> None:
    config = Config(ignore=("RB1",), extend_select=("RB3",)).but({"select": ("RB1",), "ignore": ("RB105",)})
    assert (config.select, config.extend_select, config.ignore) == (("RB1",), (), ("RB105",))


@pytest.mark.parametrize(
    ("version", "specifier", "holds"),
    [
        ("0.1.0", "0.1", True),
        ("0.1.1", "0.1", False),
        ("0.2.0", ">=0.1, <1", True),
        ("1.0", ">=0.1,<1", False),
        ("0.10", ">0.9", True),
        ("0.1.5", "~=0.1.2", True),
        ("0.2.0", "~=0.1.2", False),
        ("0.2.0", "!=0.2", False),
        ("1.2.dev3", "<=1.2", True),
    ],
)
def test_version_requirements(version: str, specifier: str, holds: bool) -> None:
    assert satisfies(version, specifier) is holds
